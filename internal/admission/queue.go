package admission

import (
	"container/list"
	"maps"
)

// Queue is a queue that takes turns by key: after an item of one key comes an item
// of the next key, however many each has. Items of one key keep their order. A
// Queue is not safe for concurrent use.
//
// Where turns differ in cost, Charge makes them fair: the next turn is that of the
// key that has used least while it had items waiting (start-time fair queueing).
// Without charges all keys have used the same.
type Queue[T any] struct {
	lines map[string]*line[T]
	turns list.List // of the same lines, the next turn first
	count int

	floor   int64            // what the key served last had used; a key that comes starts with no less
	debts   map[string]int64 // what keys without items have used, if more than the floor
	sweepAt int              // the number of debts from which those that the floor has reached are removed
}

// line is the items of one key, of which there is at least one.
type line[T any] struct {
	key   string
	items []T
	turn  *list.Element
	used  int64
}

// Len returns how many items wait.
func (q *Queue[T]) Len() int { return q.count }

// LenOf returns how many items of one key wait.
func (q *Queue[T]) LenOf(key string) int {
	if l := q.lines[key]; l != nil {
		return len(l.items)
	}
	return 0
}

// First returns the first item of a key that has items.
func (q *Queue[T]) First(key string) T { return q.lines[key].items[0] }

// Push adds v behind the other items of the key.
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

// Pop removes and returns the first item of the key whose turn it is. Keys for
// which may returns false are passed over and keep their turn; a nil may passes
// over none. ok is false if no key is left.
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

// Peek returns the key whose turn it is; ok is false if the queue is empty.
func (q *Queue[T]) Peek() (key string, ok bool) {
	if l := q.next(nil); l != nil {
		return l.key, true
	}
	return "", false
}

// next returns the line that has used least, of several the first in turn, or nil.
func (q *Queue[T]) next(may func(key string) bool) (least *line[T]) {
	for e := q.turns.Front(); e != nil; e = e.Next() {
		l := e.Value.(*line[T])
		if may != nil && !may(l.key) || least != nil && l.used >= least.used {
			continue
		}
		if least = l; l.used <= q.floor {
			break // none has used less
		}
	}
	return least
}

// Charge adds what a turn of the key has cost, in any unit. A key whose turn was
// expensive is passed over until the others have used as much, or none of them
// waits. The cost should be bounded, so that one turn does not keep a key waiting
// for long.
func (q *Queue[T]) Charge(key string, cost int64) {
	if l := q.lines[key]; l != nil {
		l.used += cost
		return
	}
	q.owe(key, max(q.floor, q.debts[key])+cost)
}

// owe keeps what a key without items has used. Debts that the floor has reached
// are removed now and then, as they have no effect.
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

// PopLast removes and returns the last item of a key; ok is false if there is
// none.
func (q *Queue[T]) PopLast(key string) (v T, ok bool) {
	l := q.lines[key]
	if l == nil {
		return v, false
	}
	v = l.items[len(l.items)-1]
	q.take(l, len(l.items)-1)
	return v, true
}

// Remove removes the first item of a key for which is returns true, and reports
// whether there was one.
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

// take removes the nth item of a line, and the line if that was its last.
func (q *Queue[T]) take(l *line[T], n int) {
	var none T
	if n == 0 {
		l.items[0] = none // so that the array does not keep it alive
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
		if l.used > q.floor { // a key that comes again still owes this
			q.owe(l.key, l.used)
		}
	}
}
