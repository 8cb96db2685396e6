package bucket

// block is a piece of the table's memory that an open dump may still have to
// read as it was. Whoever changes bytes of buf calls touch first. Putting
// another array in the place of buf needs no touch: dumps keep the old one.
type block struct {
	buf   []byte
	views []view // of dumps that have not written this block yet
}

// view says that a dump knows a block as its part number at.
type view struct {
	dump *Dump
	at   int
}

// touch lets open dumps keep buf[off:off+n] before it changes.
func (b *block) touch(off, n int) {
	if len(b.views) != 0 {
		b.save(off, n)
	}
}

func (b *block) save(off, n int) {
	keep := b.views[:0]
	for _, v := range b.views {
		if v.dump.save(v.at, off, n) {
			keep = append(keep, v)
		}
	}
	clear(b.views[len(keep):])
	b.views = keep
}

// replace puts another array in the place of buf. No dump knows the new one.
func (b *block) replace(buf []byte) {
	b.buf = buf
	b.views = nil
}
