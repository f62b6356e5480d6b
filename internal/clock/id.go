package clock

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"sync"
	"time"
)

// entropy is a buffer of random bytes, so that not every identifier needs a system
// call.
type entropy struct {
	bytes [512]byte
	used  int
}

var entropies = sync.Pool{New: func() any { return &entropy{used: len(entropy{}.bytes)} }}

// NewID returns a UUIDv7 (RFC 9562) in lower case for something created at the given
// time. Its 48 bits of milliseconds and 12 bits of rand_a hold the time to the
// microsecond, so identifiers of different microseconds sort, as text, by time;
// within one microsecond their order is random (62 bits). A time before 1970 counts
// as 1970.
//
// An identifier is unique and hard to guess, but not secret: it shows when it was
// made.
func NewID(at time.Time) string {
	micros := max(at.UnixMicro(), 0)
	ms, rest := uint64(micros)/1000, uint64(micros)%1000
	randA := rest * 4096 / 1000

	var id [16]byte
	id[0], id[1], id[2] = byte(ms>>40), byte(ms>>32), byte(ms>>24)
	id[3], id[4], id[5] = byte(ms>>16), byte(ms>>8), byte(ms)
	id[6], id[7] = 0x70|byte(randA>>8), byte(randA)
	fill(id[8:])
	id[8] = 0x80 | id[8]&0x3f
	return text(&id)
}

// IDsFrom returns the prefix of the identifiers made at a time. It sorts before all of
// them, and after all identifiers of earlier times.
func IDsFrom(at time.Time) string {
	const instant = len("01234567-89ab-7cde")
	return NewID(at)[:instant]
}

// fill fills dst with random bytes; crypto/rand.Read never fails.
func fill(dst []byte) {
	e := entropies.Get().(*entropy)
	if len(e.bytes)-e.used < len(dst) {
		_, _ = rand.Read(e.bytes[:])
		e.used = 0
	}
	e.used += copy(dst, e.bytes[e.used:])
	entropies.Put(e)
}

func text(id *[16]byte) string {
	var out [36]byte
	hex.Encode(out[0:8], id[0:4])
	out[8] = '-'
	hex.Encode(out[9:13], id[4:6])
	out[13] = '-'
	hex.Encode(out[14:18], id[6:8])
	out[18] = '-'
	hex.Encode(out[19:23], id[8:10])
	out[23] = '-'
	hex.Encode(out[24:36], id[10:16])
	return string(out[:])
}

// TimeOf returns the time, to the millisecond, of an identifier that NewID made; ok is
// false for any other text.
func TimeOf(id string) (at time.Time, ok bool) {
	if len(id) != 36 || id[8] != '-' || id[14] != '7' {
		return time.Time{}, false
	}
	var ms [8]byte
	if _, err := hex.Decode(ms[2:], []byte(id[:8]+id[9:13])); err != nil {
		return time.Time{}, false
	}
	return time.UnixMilli(int64(binary.BigEndian.Uint64(ms[:]))).UTC(), true
}
