package admission

import (
	"container/list"
	"maps"
)

// Queue holds what waits, in a line for each key, and takes turns by key: after
// one of a key comes one of the next key, however long the lines are. Within a
// line the order is that of arrival. A Queue is not safe for concurrent use.
//
// Where turns differ in length, Charge makes the turns fair by what they cost:
// the next turn is that of the key which has used least while it waited
// (start-time fair queueing). Without charges all keys have used the same.
type Queue[T any] struct {
	lines map[string]*line[T]
	turns list.List // of *line[T] with somebody waiting, the next to be served first
	count int

	floor   int64            // what the key served last had used: nobody who comes has used less
	debts   map[string]int64 // of keys that nobody waits for, above the floor
	sweepAt int              // how many debts there may be before those that the floor has reached are forgotten
}

type line[T any] struct {
	key   string
	items []T
	turn  *list.Element
	used  int64
}

// Len is how much waits altogether.
func (q *Queue[T]) Len() int { return q.count }

// LenOf is how much waits of one key.
func (q *Queue[T]) LenOf(key string) int {
	if l := q.lines[key]; l != nil {
		return len(l.items)
	}
	return 0
}

// Push puts v at the end of the key's line.
func (q *Queue[T]) Push(key string, v T) {
	l := q.lines[key]
	if l == nil {
		if q.lines == nil {
			q.lines = map[string]*line[T]{}
		}
		l = &line[T]{key: key, used: max(q.floor, q.debts[key])}
		delete(q.debts, key)
		l.turn = q.turns.PushBack(l)
		q.lines[key] = l
	}
	l.items = append(l.items, v)
	q.count++
}

// Pop takes the first of the key whose turn it is. Keys that may refuses are
// passed over and keep their turn; a nil may refuses none. It returns false when
// nobody may be served.
func (q *Queue[T]) Pop(may func(key string) bool) (key string, v T, ok bool) {
	l := q.next(may)
	if l == nil {
		return "", v, false
	}
	v = l.items[0]
	q.floor = max(q.floor, l.used)
	q.turns.MoveToBack(l.turn)
	q.take(l, 0)
	return l.key, v, true
}

// Peek returns the key whose turn it is, false when nobody waits.
func (q *Queue[T]) Peek() (key string, ok bool) {
	if l := q.next(nil); l != nil {
		return l.key, true
	}
	return "", false
}

// next is the line that has used least, of several the one whose turn is first.
func (q *Queue[T]) next(may func(key string) bool) (least *line[T]) {
	for e := q.turns.Front(); e != nil; e = e.Next() {
		l := e.Value.(*line[T])
		if may != nil && !may(l.key) || least != nil && l.used >= least.used {
			continue
		}
		if least = l; l.used <= q.floor {
			break // nobody has used less
		}
	}
	return least
}

// Charge notes what a turn of the key has cost, in any unit. A key whose one
// turn cost much is passed over until others have used as much, or nobody else
// waits; cost should be bounded, or one turn keeps the key away for long.
func (q *Queue[T]) Charge(key string, cost int64) {
	if l := q.lines[key]; l != nil {
		l.used += cost
		return
	}
	q.owe(key, max(q.floor, q.debts[key])+cost)
}

// owe keeps what a key has used that nobody waits for. A debt that the floor has
// reached is none.
func (q *Queue[T]) owe(key string, used int64) {
	if q.debts == nil {
		q.debts = map[string]int64{}
	}
	q.debts[key] = used
	if len(q.debts) > max(64, q.sweepAt) {
		maps.DeleteFunc(q.debts, func(_ string, used int64) bool { return used <= q.floor })
		q.sweepAt = 2 * len(q.debts)
	}
}

// PopLast takes the last of the key's line.
func (q *Queue[T]) PopLast(key string) (v T, ok bool) {
	l := q.lines[key]
	if l == nil {
		return v, false
	}
	v = l.items[len(l.items)-1]
	q.take(l, len(l.items)-1)
	return v, true
}

// Remove takes the first of the key's line that is the one asked for out of it,
// and reports whether there was one.
func (q *Queue[T]) Remove(key string, is func(T) bool) bool {
	l := q.lines[key]
	if l == nil {
		return false
	}
	for n, v := range l.items {
		if is(v) {
			q.take(l, n)
			return true
		}
	}
	return false
}

// take drops the nth of a line; a line that is empty is forgotten.
func (q *Queue[T]) take(l *line[T], n int) {
	var none T
	if n == 0 {
		l.items[0] = none // or the list behind the slice would keep it alive
		l.items = l.items[1:]
	} else {
		copy(l.items[n:], l.items[n+1:])
		l.items[len(l.items)-1] = none
		l.items = l.items[:len(l.items)-1]
	}
	q.count--
	if len(l.items) == 0 {
		q.turns.Remove(l.turn)
		delete(q.lines, l.key)
		if l.used > q.floor { // whoever left and comes again owes what it owed
			q.owe(l.key, l.used)
		}
	}
}
