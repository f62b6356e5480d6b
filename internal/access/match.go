package access

import "slices"

// LacksMatchesOf reports whether a user with an identity would reach records by sharing
// rules under which the viewer does not reach them: by a value that the user has and the
// viewer has not, or because they are an external user. What is reached with the identity
// had does not count; nil is none. It compares under the viewer's configuration and without
// regard to permission sets, which may be given later (contract A13).
func (w Viewer) LacksMatchesOf(is Identity, had *Identity) bool {
	if w.v == nil || w.v.all {
		return w.v == nil
	}
	would, before := viewerOf(w.v.config, is), Viewer{}
	if had != nil {
		before = viewerOf(w.v.config, *had)
	}
	for name := range would.v.entities {
		for _, verb := range []Verb{Read, Update} {
			if w.v.entities[name].scopes[verb].All {
				continue
			}
			own, was := w.v.matches(name, verb), before.v.matches(name, verb)
			for _, m := range would.v.matches(name, verb) {
				if !slices.Contains(own, m) && !slices.Contains(was, m) {
					return true
				}
			}
		}
	}
	return false
}

// MayGive reports whether the viewer, who may manage the fields of a user (MayManage), may
// make of the identity was that of is: whoever manages external users decides which
// records match these; all others give what they have (contract U9).
func (w Viewer) MayGive(is, was Identity) bool {
	return w.v != nil && (w.v.elevated || is.External && w.v.holds(ManageExternalUsers)) || !w.LacksMatchesOf(is, &was)
}

// match is a name under which a sharing rule reaches records.
type match struct {
	kind Kind
	name string
}

// matches returns the names under which a verb reaches records of an entity type by role or
// by sharing rule.
func (v *viewer) matches(entity string, verb Verb) (list []match) {
	if v == nil {
		return nil
	}
	for _, way := range v.entities[entity].scopes[verb].Ways {
		if way.Kind == ByRule || way.Kind == ByOwnerRole {
			for _, name := range way.Names {
				list = append(list, match{way.Kind, name})
			}
		}
	}
	return list
}
