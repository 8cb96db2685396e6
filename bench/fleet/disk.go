package fleet

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// diskSize is what a small disk holds, in bytes: enough for the control log of a
// test, and soon full.
const diskSize = 24 << 20

// filler is the file by which a small disk is filled.
const filler = "filler"

// smallDisk mounts an ext4 of its own at a node's data directory, from a file
// beside it whose name tells the process. (A tmpfs would not do: a file of
// holes that is mapped dies of SIGBUS where it is full.)
func (y *yard) smallDisk(n *Node) error {
	image := filepath.Join(n.dir, y.port(n.Name)+".img")
	if err := errors.Join(os.MkdirAll(n.dataDir(), 0o755), os.WriteFile(image, nil, 0o600), os.Truncate(image, diskSize)); err != nil {
		return fmt.Errorf("disk of node %s: %w", n.Name, err)
	}
	if err := command("mkfs.ext4", "-q", "-F", "-O", "^has_journal", "-m", "0", image); err != nil {
		return err
	}
	if err := command("mount", "-o", "loop", image, n.dataDir()); err != nil {
		return err
	}
	y.disks = append(y.disks, n.dataDir())
	return nil
}

// CanMountDisks says why nodes cannot be given small disks here, nil if they can: it
// makes one below dir.
func CanMountDisks(dir string) error {
	n := &Node{Name: "a", dir: filepath.Join(dir, "disk")}
	y := &yard{name: fmt.Sprintf("%s%d.0", prefix, os.Getpid())}
	if err := y.smallDisk(n); err != nil {
		return err
	}
	return errors.Join(command("umount", n.dataDir()), os.RemoveAll(n.dir))
}

// FillDisk fills the small disk of a node, so that no write to it that needs
// room can succeed; FreeDisk undoes it.
func (f *Fleet) FillDisk(n *Node) error {
	if !f.cfg.SmallDisks {
		return fmt.Errorf("node %s has no small disk", n.Name)
	}
	file, err := os.Create(filepath.Join(n.dataDir(), filler))
	if err != nil {
		return fmt.Errorf("fill the disk of node %s: %w", n.Name, err)
	}
	defer file.Close()
	for size := 64 << 10; size > 0; {
		if _, err := file.Write(make([]byte, size)); errors.Is(err, syscall.ENOSPC) {
			size /= 2 // the rest in smaller pieces
		} else if err != nil {
			return fmt.Errorf("fill the disk of node %s: %w", n.Name, err)
		}
	}
	return file.Sync()
}

// FreeDisk removes what FillDisk has written.
func (f *Fleet) FreeDisk(n *Node) error {
	return os.Remove(filepath.Join(n.dataDir(), filler))
}

// sweepDisks unmounts the disks of dead harnesses: the image behind a loop device
// tells whose it was.
func sweepDisks() {
	for _, m := range mounts() {
		loop, ok := strings.CutPrefix(m[0], "/dev/loop")
		if !ok {
			continue
		}
		image, err := os.ReadFile("/sys/block/loop" + loop + "/loop/backing_file")
		if err == nil && dead(filepath.Base(strings.TrimSpace(string(image)))) {
			_ = command("umount", m[1])
		}
	}
}
