package component

import "bytes"

// block is the unit in which images are compared: the operating system's page, in
// which memory is returned, too.
const block = 4 << 10

// image is the state of an instance, except for the C stack, which is empty when an
// image is taken. Every run starts with loading an image.
type image struct {
	spans []span
	end   int    // bytes from here on are zero
	pages uint32 // pages in use
	sp    uint32 // the C stack pointer
	owned int    // bytes that are not shared with the base image
}

// span is a piece of memory, shared with the base image where it is equal.
type span struct {
	at   int
	data []byte
}

// snapshot returns an image of the instance's state. It shares with the base image
// each block that is equal.
func (i *instance) snapshot(base *image) *image {
	img := &image{pages: uint32(i.pages.Get()), sp: uint32(i.sp.Get())}
	mem := i.mem.b
	end := int(img.pages) * pageSize
	for end > stackBytes && isZero(mem[end-block:end]) {
		end -= block
	}
	img.end = end
	if base == nil {
		img.spans = []span{{stackBytes, bytes.Clone(mem[stackBytes:end])}}
		img.owned = end - stackBytes
		return img
	}
	whole := base.spans[0].data
	for at := stackBytes; at < end; {
		same := base.same(mem, whole, at)
		next := at + block
		for next < end && base.same(mem, whole, next) == same {
			next += block
		}
		if same {
			img.spans = append(img.spans, span{at, whole[at-stackBytes : next-stackBytes]})
		} else {
			img.spans = append(img.spans, span{at, bytes.Clone(mem[at:next])})
			img.owned += next - at
		}
		at = next
	}
	return img
}

// same reports whether the block at offset at equals the base image's.
func (img *image) same(mem, whole []byte, at int) bool {
	return at+block <= img.end && bytes.Equal(mem[at:at+block], whole[at-stackBytes:at-stackBytes+block])
}

// load puts the instance into the image's state. It returns OVERLOADED when the
// tenant may not hold the memory. The C stack must have been wiped.
func (i *instance) load(img *image) error {
	if !i.hold(i.run.tenant, int64(img.pages-i.machine.base.pages)*pageSize) {
		return errNoMemory
	}
	for _, s := range img.spans {
		copy(i.mem.b[s.at:], s.data)
	}
	if i.high > img.end {
		clear(i.mem.b[img.end:i.high])
	}
	i.high = int(img.pages) * pageSize
	i.pages.Set(uint64(img.pages))
	i.sp.Set(uint64(img.sp))
	return nil
}

// keepMapped is the end of the memory that stays mapped between runs; the rest is
// returned to the operating system.
const keepMapped = stackBytes + 2<<20

// wipe clears the C stack and returns the memory that a run used beyond
// keepMapped. The next load overwrites the rest.
func (i *instance) wipe() {
	clear(i.mem.b[stackBytes-clearedStack : stackBytes])
	i.mem.discard(0, stackBytes-clearedStack)
	pages := uint32(i.pages.Get())
	i.high = int(pages) * pageSize
	if i.high > keepMapped {
		i.mem.discard(keepMapped, i.high)
		i.high = keepMapped
	}
	i.giveBack()
}

func isZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}
