package bucket

// How large segments are, and when they change. Small ones follow the size
// classes of Go's allocator, so that nothing is lost to rounding; large ones its
// pages of 8 KiB. Steps of 1.14 … 1.33 keep the mean load near 0.75.
const (
	maxSegmentBytes = 128 << 10 // above it a segment splits: 0.4 ms to touch at 12 µs a page
	maxDepth        = 14        // a slot splits into at most 2^14 segments; then they grow on

	maxLoad   = 83 // per cent of the cells in use; more and the segment grows
	roomyLoad = 72 // per cent, at most, of a segment made by a split, a merge or a shrink
	minLoad   = 30 // per cent; less and the segment shrinks when the sweep leaves it
)

var segmentBytes = [...]int{
	288, 384, 512, 640, 768, 1024, 1280, 1536, 1792, 2304, 2688, 3456, 4096, 4864, 6144, 8192, 9472, 12288,
	14336, 18432, 21760, 27264, 32768, 40960, 49152, 65536, 81920, 98304, 114688, maxSegmentBytes,
}

const minCells = 288 / cellSize

// maxCells is the capacity above which a segment splits.
const maxCells = maxSegmentBytes / cellSize

// cellsFor is the smallest capacity that holds count cells at load per cent.
func cellsFor(count uint32, load int) uint32 {
	need := uint64(count)*100/uint64(load) + 1
	for _, b := range segmentBytes {
		if c := uint64(b / cellSize); c >= need {
			return uint32(c)
		}
	}
	const page = 8 << 10
	b := (need*cellSize*5/4 + page - 1) / page * page
	return uint32(b / cellSize)
}

// crowded says whether one more cell would exceed maxLoad.
func (s *segment) crowded() bool {
	return uint64(s.count+1)*100 > uint64(s.cells)*maxLoad
}

// sparse says whether the segment wastes most of its memory.
func (s *segment) sparse() bool {
	return s.cells > minCells && uint64(s.count)*100 < uint64(s.cells)*minLoad
}
