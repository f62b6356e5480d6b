package automation

import "github.com/go-json-experiment/json/jsontext"

// equal compares values: 1 equals 1.0, and the order of an object's members does not
// matter. The errors are those of expression.
func (r *run) equal(a, b any, depth int) (bool, error) {
	if err := r.step(1); err != nil {
		return false, err
	}
	if depth > MaxDepth {
		return false, errDeep
	}
	if x, ok := double(a); ok {
		y, ok := double(b)
		return ok && x == y, nil
	}
	switch a := a.(type) {
	case string:
		b, ok := b.(string)
		return ok && a == b, r.step(min(len(a), len(b)) / 64)
	case []any:
		return r.equalLists(a, b, depth+1)
	case *object:
		return r.equalObjects(a, b, depth+1)
	case jsontext.Value:
		var opened any = a
		if err := r.open(&opened); err != nil {
			return false, err
		}
		return r.equal(opened, b, depth)
	}
	if _, closed := b.(jsontext.Value); closed {
		return false, nil // a is a scalar
	}
	return a == b, nil // null, true, false
}

func (r *run) equalLists(a []any, other any, depth int) (bool, error) {
	if err := r.open(&other); err != nil {
		return false, err
	}
	b, ok := other.([]any)
	if !ok || len(a) != len(b) {
		return false, nil
	}
	for i := range a {
		if same, err := r.equal(a[i], b[i], depth); !same || err != nil {
			return false, err
		}
	}
	return true, nil
}

func (r *run) equalObjects(a *object, other any, depth int) (bool, error) {
	if err := r.open(&other); err != nil {
		return false, err
	}
	b, ok := other.(*object)
	if !ok || len(a.members) != len(b.members) {
		return false, nil
	}
	for i := range a.members {
		place := b.get(a.members[i].name)
		if place == nil {
			return false, nil
		}
		if same, err := r.equal(a.members[i].value, *place, depth); !same || err != nil {
			return false, err
		}
	}
	return true, nil
}
