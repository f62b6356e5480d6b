package custom

import (
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
)

// Digest is a digest of what a component's program is compiled from.
type Digest [sha256.Size]byte

// DigestOf returns the digest of a list of texts.
func DigestOf(texts ...string) Digest {
	h := sha256.New()
	var length [8]byte
	for _, text := range texts {
		binary.LittleEndian.PutUint64(length[:], uint64(len(text)))
		h.Write(length[:])
		h.Write([]byte(text))
	}
	return Digest(h.Sum(nil))
}

// Digest returns the digest of a component: its source, the modules that it imports, its
// config and its secrets as they are stored. It is computed once.
func (d *Definitions) Digest(c *Component) Digest {
	if known, ok := d.digests.Load(c); ok {
		return known.(Digest)
	}
	texts := []string{c.Source, string(c.Config)}
	for _, name := range slices.Sorted(maps.Keys(c.Secrets)) {
		texts = append(texts, name, c.Secrets[name])
	}
	texts = append(texts, "")
	for _, name := range c.Imports {
		if m := d.Modules[name]; m != nil {
			texts = append(texts, name, m.Source)
		}
	}
	digest := DigestOf(texts...)
	d.digests.Store(c, digest)
	return digest
}
