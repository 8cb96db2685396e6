package main

// lead is the cores that leading a group takes, follow those of a replica that follows.
func (x node) lead() float64 {
	t := x.takes()
	return x.rounds(t)*x.c.CommitCPU + t*x.c.TakeCPU + x.denials()*x.c.DenyCPU
}

func (x node) follow() float64 {
	t := x.takes()
	return x.rounds(t)*x.c.FollowCPU + t*x.c.CopyCPU
}

// cores is what a node with these roles uses.
func (x node) cores(r roles) float64 {
	return x.c.NodeCPU + x.c.PeerCPU*float64(x.n-1) + r.leads*x.lead() + r.follows*x.follow()
}

// fitsCPU says whether the cores of a node are enough, with all there and with one gone.
func (x node) fitsCPU() bool {
	return x.cores(x.whole()) <= x.s.Use*x.s.Cores && x.withOneGone(func(r roles) bool { return x.cores(r) <= x.s.UseGone*x.s.Cores })
}

// withOneGone judges the roles of when a node is gone, if that is to be survived.
func (x node) withOneGone(fits func(roles) bool) bool {
	if !x.s.Survive {
		return true
	}
	for _, r := range x.gone() {
		if !fits(r) {
			return false
		}
	}
	return true
}

// fitsGroup says whether one leader keeps up with its group.
func (x node) fitsGroup() bool { return x.takes() <= x.s.Use*x.c.GroupRate }
