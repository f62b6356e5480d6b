package admission

import "container/list"

// Queue holds what waits, in a line for each key, and takes turns by key: after
// one of a key comes one of the next key, however long the lines are. Within a
// line the order is that of arrival. A Queue is not safe for concurrent use.
type Queue[T any] struct {
	lines map[string]*line[T]
	turns list.List // of *line[T] with somebody waiting, the next to be served first
	count int
}

type line[T any] struct {
	key   string
	items []T
	turn  *list.Element
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
		l = &line[T]{key: key}
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
	for e := q.turns.Front(); e != nil; e = e.Next() {
		l := e.Value.(*line[T])
		if may != nil && !may(l.key) {
			continue
		}
		v = l.items[0]
		q.take(l, 0)
		if len(l.items) > 0 {
			q.turns.MoveToBack(e)
		}
		return l.key, v, true
	}
	return "", v, false
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
	}
}
