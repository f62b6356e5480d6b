package component

// matcher finds texts in a text, in time that grows with that text alone (Aho and
// Corasick). A state is the beginning of one of the texts that was read last; state 0 is
// none. The states of a text follow each other, from where it parts from earlier ones.
type matcher struct {
	last    []uint16 // the last byte of each state; with parts for one that does not follow
	fail    []int32  // the longest other state that the state ends with
	ends    []int32  // the length of the longest text that the state ends with; 0 for none
	begins  [256]int32
	others  map[edge]int32 // the states that do not follow, but those of begins
	longest int
}

type edge struct {
	from int32
	by   byte
}

const (
	parts = 1 << 8
	// stateBytes is the memory of one state.
	stateBytes = 10
)

// newMatcher returns a matcher of texts, none of them empty.
func newMatcher(texts []string) *matcher {
	m := &matcher{last: []uint16{parts}, fail: []int32{0}, ends: []int32{0}, others: map[edge]int32{}}
	for _, text := range texts {
		at := int32(0)
		for n := range len(text) {
			at = m.grow(at, text[n], n > 0 && int(at) == len(m.last)-1)
		}
		m.ends[at] = int32(len(text))
		m.longest = max(m.longest, len(text))
	}
	m.link()
	return m
}

// grow returns the state after one, which is made when there is none. It follows that
// state where it can.
func (m *matcher) grow(from int32, by byte, follows bool) int32 {
	if to := m.next(from, by); to != 0 {
		return to
	}
	to := int32(len(m.last))
	switch {
	case follows:
		m.last = append(m.last, uint16(by))
	case from == 0:
		m.last, m.begins[by] = append(m.last, parts), to
	default:
		m.last, m.others[edge{from, by}] = append(m.last, parts), to
	}
	m.fail, m.ends = append(m.fail, 0), append(m.ends, 0)
	return to
}

// next returns the state after one, or 0.
func (m *matcher) next(from int32, by byte) int32 {
	if from == 0 {
		return m.begins[by]
	}
	if to := from + 1; int(to) < len(m.last) && m.last[to] == uint16(by) {
		return to
	}
	return m.others[edge{from, by}]
}

// step returns the state after one and a byte.
func (m *matcher) step(from int32, by byte) int32 {
	for {
		to := m.next(from, by)
		if to != 0 || from == 0 {
			return to
		}
		from = m.fail[from]
	}
}

// link sets fail, and ends of the states that end with a shorter text, of shorter states
// first.
func (m *matcher) link() {
	parting := map[int32][]edge{}
	for e := range m.others {
		parting[e.from] = append(parting[e.from], e)
	}
	queue := make([]int32, 0, len(m.last))
	for _, to := range m.begins {
		if to != 0 {
			queue = append(queue, to)
		}
	}
	for n := 0; n < len(queue); n++ {
		from := queue[n]
		link := func(by byte, to int32) {
			fail := m.step(m.fail[from], by)
			m.fail[to] = fail
			if m.ends[to] == 0 {
				m.ends[to] = m.ends[fail]
			}
			queue = append(queue, to)
		}
		if to := from + 1; int(to) < len(m.last) && m.last[to] < parts {
			link(byte(m.last[to]), to)
		}
		for _, e := range parting[from] {
			link(e.by, m.others[e])
		}
	}
}

// stretch is a part of a text, from begin to before end.
type stretch struct{ begin, end int }

// find returns where the texts of a matcher are in s. Those that overlap are one.
func find[T string | []byte](m *matcher, s T) (found []stretch) {
	state := int32(0)
	for at := range len(s) {
		state = m.step(state, s[at])
		if m.ends[state] == 0 {
			continue
		}
		is := stretch{at + 1 - int(m.ends[state]), at + 1}
		for n := len(found) - 1; n >= 0 && found[n].end > is.begin; n-- {
			is.begin = min(is.begin, found[n].begin)
			found = found[:n]
		}
		found = append(found, is)
	}
	return found
}

// size returns the memory that the matcher holds, in bytes.
func (m *matcher) size() int { return len(m.last)*stateBytes + len(m.others)*32 }
