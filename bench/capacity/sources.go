package main

// measuredConstants are the constants this program counts with unless told other
// ones. A test holds that each line quoted here still stands where it is said to.
func measuredConstants() (*constants, []source) {
	c := new(constants)
	all := append(cpuSources(c), memorySources(c)...)
	all = append(all, networkSources(c)...)
	all = append(all, changeSources(c)...)
	return c, all
}
