package clock_test

import (
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"gatehouse/internal/clock"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 123456000, time.UTC)

func TestTheSystemClockGivesUTCMicroseconds(t *testing.T) {
	before := time.Now()
	now := clock.System().Now()
	if now.Location() != time.UTC || now.Nanosecond()%1000 != 0 {
		t.Fatalf("now = %v", now)
	}
	if now.Before(before.Add(-time.Millisecond)) || now.After(time.Now()) {
		t.Fatalf("now = %v, asked at %v", now, before)
	}
	if back := clock.FromMicros(clock.Micros(now)); back != now {
		t.Fatalf("read back as %v, was %v", back, now)
	}
}

func TestAFakeClockMovesOnlyWhenTold(t *testing.T) {
	f := clock.NewFake(noon.In(time.FixedZone("elsewhere", 3600)).Add(7))
	var _ clock.Clock = f
	if f.Now() != noon {
		t.Fatalf("now = %v, want %v", f.Now(), noon)
	}
	f.Advance(90 * time.Second)
	f.Advance(-30 * time.Second)
	if want := noon.Add(time.Minute); f.Now() != want {
		t.Fatalf("now = %v, want %v", f.Now(), want)
	}
	f.Set(noon)
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for range 100 {
				f.Advance(time.Microsecond)
				_ = f.Now()
			}
		})
	}
	wait.Wait()
	if want := noon.Add(800 * time.Microsecond); f.Now() != want {
		t.Fatalf("now = %v, want %v", f.Now(), want)
	}
}

func TestAnIDIsAUUIDv7OfItsInstant(t *testing.T) {
	for _, at := range []time.Time{noon, time.UnixMicro(0), time.UnixMicro(1), time.Date(9999, 12, 31, 23, 59, 59, 999999000, time.UTC)} {
		id := clock.NewID(at)
		u, err := uuid.Parse(id)
		if err != nil || u.String() != id || u.Version() != 7 || u.Variant() != uuid.RFC4122 {
			t.Fatalf("%q is no UUIDv7 in its usual form: %v", id, err)
		}
		var ms int64
		for _, b := range u[:6] {
			ms = ms<<8 | int64(b)
		}
		if ms != at.UnixMilli() {
			t.Errorf("%q says %d ms, want %d", id, ms, at.UnixMilli())
		}
	}
	if id := clock.NewID(time.UnixMicro(-5)); id[:18] != "00000000-0000-7000" {
		t.Errorf("before 1970: %q", id)
	}
}

func TestIDsSortLikeTheirInstants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first := rapid.Int64Range(0, 1<<51).Draw(t, "first")
		later := first + rapid.OneOf(rapid.Just(int64(1)), rapid.Int64Range(1, 5000), rapid.Int64Range(1, 1<<50)).Draw(t, "step")
		a, b := clock.NewID(time.UnixMicro(first)), clock.NewID(time.UnixMicro(later))
		if a >= b {
			t.Fatalf("%s of %d µs is not before %s of %d µs", a, first, b, later)
		}
	})
	previous := ""
	for micros := range int64(5000) {
		id := clock.NewID(time.UnixMicro(1_790_000_000_000_000 + micros))
		if id <= previous {
			t.Fatalf("%s after %s", id, previous)
		}
		previous = id
	}
}

func TestIDsOfOneInstantDiffer(t *testing.T) {
	var mu sync.Mutex
	seen := map[string]bool{}
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for range 2000 {
				id := clock.NewID(noon)
				mu.Lock()
				if seen[id] {
					t.Errorf("%s came twice", id)
				}
				seen[id] = true
				mu.Unlock()
			}
		})
	}
	wait.Wait()
}

func TestOnlyRFC3339IsParsed(t *testing.T) {
	for _, right := range []string{"2026-11-23T09:30:00Z", "2026-11-23T09:30:00.5+01:00", "2026-11-23T09:30:00.123456789-23:59"} {
		if at, err := clock.ParseRFC3339(right); err != nil || at.Year() != 2026 {
			t.Errorf("%s: %v, %v", right, at, err)
		}
	}
	for _, wrong := range []string{
		"", "2026-11-23", "2026-11-23T09:30:00", "2026-11-23t09:30:00Z", "2026-11-23 09:30:00Z", "2026-11-23T9:30:00Z", "2026-11-23T09:30:00,5Z",
		"2026-11-23T09:30:00+24:00", "2026-11-23T09:30:00+01:60", "2026-11-23T09:30:00+0100", "2026-02-30T09:30:00Z",
	} {
		if at, err := clock.ParseRFC3339(wrong); err == nil {
			t.Errorf("%s is %v", wrong, at)
		}
	}
}

const layout = "2006-01-02T15:04:05.000000Z07:00"

func TestTimesAreWrittenAsTimeFormatWritesThem(t *testing.T) {
	edges := []int64{
		0, -1, 1, 999_999, 1_000_000, -62_167_219_200_000_000, -62_167_219_200_000_001,
		253_402_300_799_999_999, 253_402_300_800_000_000,
		time.Date(2000, 2, 29, 23, 59, 59, 999999000, time.UTC).UnixMicro(),
		time.Date(1900, 2, 28, 23, 59, 59, 0, time.UTC).UnixMicro(),
		time.Date(2400, 12, 31, 0, 0, 0, 0, time.UTC).UnixMicro(),
	}
	for _, micros := range edges {
		if got, want := string(clock.AppendRFC3339Micro(nil, micros)), clock.FromMicros(micros).Format(layout); got != want {
			t.Errorf("%d µs: %s, want %s", micros, got, want)
		}
	}
	if got := string(clock.AppendRFC3339Micro([]byte("at "), 1_795_239_488_123_456)); got != "at 2026-11-21T05:38:08.123456Z" {
		t.Error(got)
	}
	rapid.Check(t, func(t *rapid.T) {
		micros := rapid.Int64Range(-62_167_219_200_000_000, 253_402_300_799_999_999).Draw(t, "micros")
		if got, want := string(clock.AppendRFC3339Micro(nil, micros)), clock.FromMicros(micros).Format(layout); got != want {
			t.Fatalf("%d µs: %s, want %s", micros, got, want)
		}
	})
	for day := range int64(146_097 * 2) { // every day of 1600 to 2400
		micros := (day - 135_140) * 86_400_000_000
		if got, want := string(clock.AppendRFC3339Micro(nil, micros)), clock.FromMicros(micros).Format(layout); got != want {
			t.Fatalf("%d µs: %s, want %s", micros, got, want)
		}
	}
}

func BenchmarkNewID(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		_ = clock.NewID(noon)
	}
}

func BenchmarkAppendRFC3339Micro(b *testing.B) {
	b.ReportAllocs()
	var buf [64]byte
	for b.Loop() {
		_ = clock.AppendRFC3339Micro(buf[:0], 1_795_239_488_123_456)
	}
}
