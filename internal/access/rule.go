package access

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/schema"
	"gatehouse/internal/user"
)

// Condition is one equality of a sharing rule's `where`: of a field of the record
// with a canonical Value or, if Viewer is set, with what the viewer has there.
type Condition struct {
	// Field is a name that schema.Entity.Comparand takes: a field, or IDField, which
	// is compared with the viewer alone.
	Field string         `json:"field"`
	Value jsontext.Value `json:"value,omitzero"`
	// Viewer is ViewerID, ViewerEmail, or the name of a managed field of users.
	Viewer string `json:"viewer,omitempty"`
}

// What of a viewer, beside managed fields, a condition may be about. No field of
// users has one of these names.
const (
	ViewerID    = "id"
	ViewerEmail = "email"
)

// Key returns the text in which both sides of the condition agree exactly when
// they are equal; f is the condition's field, and v a canonical value of it, or of
// the viewer. There is none for null.
func (c *Condition) Key(f *schema.Field, v jsontext.Value) (key string, ok bool) {
	switch {
	case c.Viewer != ViewerEmail || schema.IsNull(v):
		return f.Key(v)
	case len(v) > maxAddress:
		return "", false
	}
	address := user.EmailKey(schema.Unquote(v))
	return address, address != ""
}

// maxAddress is more than the length of the JSON of any e-mail address of a user.
const maxAddress = 2048

// Audience is whom a rule shares with, where that is no role.
type Audience string

// The audiences.
const (
	InternalUsers Audience = "internal"
	ExternalUsers Audience = "external"
	Everyone      Audience = "everyone"
)

// Audiences lists them all.
var Audiences = []Audience{InternalUsers, ExternalUsers, Everyone}

// Has reports whether a user is in the audience.
func (a Audience) Has(external bool) bool {
	return a == Everyone || a == ExternalUsers && external || a == InternalUsers && !external
}

// SharingRule shares records with the users of a role and of its ancestors, or
// with an audience: the records whose owner has exactly the role OwnedByRole, or
// those that satisfy every condition of Where. Exactly one of OwnedByRole and
// Where is set, and exactly one of ShareWithRole and ShareWith.
type SharingRule struct {
	Entity        string
	OwnedByRole   string
	Where         []Condition // by field name
	ShareWithRole string
	ShareWith     Audience `json:",omitzero"`
	Access        Level
	// MatchName is the name under which the matches of a rule by field value are
	// stored; "" is its ID. See StoredAs.
	MatchName string
}

// StoredAs returns the name under which the rule's matches are stored. The
// matches of a rule that matches the viewer have the names of its members.
func (r *SharingRule) StoredAs() string {
	if r.MatchName != "" {
		return r.MatchName
	}
	return r.ID()
}

// MatchesViewer reports whether a condition is about the viewer. Such a rule is
// a family: for each combination of values that viewers may have there is a
// member, a rule by value, of which only the name is ever made.
func (r *SharingRule) MatchesViewer() bool {
	return slices.ContainsFunc(r.Where, func(c Condition) bool { return c.Viewer != "" })
}

// Cause returns the cause of the sources of the rule.
func (r *SharingRule) Cause() Cause {
	switch {
	case r.OwnedByRole != "":
		return RuleByOwnerRole
	case r.MatchesViewer():
		return RuleByViewer
	}
	return RuleByValue
}

// viewerForm is how an author writes what a condition takes from the viewer.
var viewerForm = regexp.MustCompile(`^\{\{ *user\.([a-z][a-z0-9_]{0,62}) *\}\}$`)

// viewerMeant finds texts that are meant to name something of the viewer.
var viewerMeant = regexp.MustCompile(`^\{\{.*\}\}$|\{\{ *user\.`)

// ViewerForm reads the right side of a condition that names something of the
// viewer, as {{user.id}} does; is says that the text is meant to, and viewer is ""
// where it has another form.
func ViewerForm(text string) (viewer string, is bool) {
	if !viewerMeant.MatchString(text) {
		return "", false
	}
	if found := viewerForm.FindStringSubmatch(text); found != nil {
		viewer = found[1]
	}
	return viewer, true
}

// ViewerExpected says what a right side with {{ must be.
const ViewerExpected = "expected a value, or {{user.id}}, {{user.email}} or {{user.FIELD}} with a managed field of user_fields"

// IDExpected says what the right side of a condition on a record's own id must be.
const IDExpected = "id is compared with the viewer alone: expected {{user.FIELD}} with a managed field that refers to such records; a share opens a single record"

// Member returns the name of a member of a family that is stored under a name.
// keys are those of its conditions about the viewer, in their order.
func Member(storedAs string, keys []string) string {
	h := sha256.New()
	for _, key := range keys {
		fmt.Fprintf(h, "%d %s ", len(key), key)
	}
	return storedAs + memberMark + hex.EncodeToString(h.Sum(nil)[:16])
}

// memberMark separates the digest in the name of a member. A rule's own name does
// not contain it.
const memberMark = "~"

// Span is a range of names: at least From and less than To, as bytes are compared.
type Span struct{ From, To string }

// Spans returns the ranges of the names of the matches of a rule that is stored
// under a name: its own name, and the names of its members.
func Spans(storedAs string) [2]Span {
	return [2]Span{{storedAs, storedAs + "!"}, {storedAs + memberMark, storedAs + string(rune(memberMark[0]+1))}}
}

// IsOf reports whether a name of matches is that of a rule that is stored under
// storedAs, or of one of its members.
func IsOf(name, storedAs string) bool {
	return name == storedAs || strings.HasPrefix(name, storedAs+memberMark)
}

// ID returns an identifier made of the rule's content except its level: two rules
// that differ only in level are one rule that was changed.
func (r *SharingRule) ID() string {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %q", r.Entity, r.OwnedByRole, r.ShareWithRole)
	for _, c := range r.Where {
		if c.Viewer == "" {
			fmt.Fprintf(h, " %q=%s", c.Field, c.Value)
		} else {
			fmt.Fprintf(h, " %q={%q}", c.Field, c.Viewer)
		}
	}
	if r.ShareWith != "" {
		fmt.Fprintf(h, " with %s", r.ShareWith)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// standsIn returns the names under which a rule by field value reaches the
// viewer: its own, or those of the members that the viewer's values lead to, one
// for each combination of the elements of lists. A viewer without a value is in
// none (contract A19).
func (v *viewer) standsIn(rule *SharingRule) []string {
	if !rule.MatchesViewer() {
		return []string{rule.StoredAs()}
	}
	e := v.config.Schema.Entity(rule.Entity)
	combined := [][]string{nil}
	for i := range rule.Where {
		c := &rule.Where[i]
		if c.Viewer == "" {
			continue
		}
		var next [][]string
		for _, key := range v.keys(c, e.Comparand(c.Field)) {
			for _, keys := range combined {
				next = append(next, append(slices.Clip(keys), key))
			}
		}
		combined = next
	}
	names := make([]string, len(combined))
	for i, keys := range combined {
		names[i] = Member(rule.StoredAs(), keys)
	}
	return names
}

// keys returns the keys of what the viewer has for a condition on a field.
func (v *viewer) keys(c *Condition, f *schema.Field) (keys []string) {
	switch {
	case f == nil || v.userID == "":
		return nil
	case c.Viewer == ViewerID:
		return []string{string(v.userID)}
	case c.Viewer == ViewerEmail:
		if v.emailKey == "" {
			return nil
		}
		return []string{v.emailKey}
	}
	own := v.config.Schema.User.Field(c.Viewer)
	if own == nil || !own.Managed {
		return nil
	}
	for _, value := range own.Elements(v.managed[own.Name]) {
		if key, ok := c.Key(f, value); ok && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// Comparable returns why a field of records cannot be compared with what a
// condition takes from the viewer, in words for the author of a rule, or nil.
func (c *Condition) Comparable(s *schema.Schema, f *schema.Field) error {
	switch {
	case !f.Keyed():
		return fmt.Errorf("field %s must be a reference, indexed or unique to be compared with the viewer", f.Name)
	case c.Viewer == ViewerID:
		if f.Type == schema.Text || f.Type == schema.Reference && f.Target == schema.UserEntity {
			return nil
		}
		return fmt.Errorf("field %s is a %s: {{user.id}} is compared with a reference to user, or with text", f.Name, f.Describe())
	case c.Viewer == ViewerEmail:
		if f.Type == schema.Text {
			return nil
		}
		return fmt.Errorf("field %s is a %s: {{user.email}} is compared with text", f.Name, f.Describe())
	}
	own := s.User.Field(c.Viewer)
	switch {
	case own == nil:
		return fmt.Errorf("{{user.%s}}: users have no field %q", c.Viewer, c.Viewer)
	case !own.Managed:
		return fmt.Errorf("{{user.%s}}: field %s of user_fields is not managed: users set it themselves, so that no rule may depend on it", c.Viewer, c.Viewer)
	case !alike(own, f):
		return fmt.Errorf("field %s is a %s, and {{user.%s}} a %s: they cannot be equal", f.Name, f.Describe(), c.Viewer, own.Describe())
	}
	return nil
}

// alike reports whether values of a field of users can equal those of a field of
// records.
func alike(own, f *schema.Field) bool {
	texts := []schema.Type{schema.Text, schema.Select, schema.Multiselect}
	switch {
	case own.Refers() || f.Refers():
		return own.Refers() && f.Refers() && own.Target == f.Target
	case slices.Contains(texts, own.Type):
		return slices.Contains(texts, f.Type)
	}
	return own.Scalar() && own.Type == f.Type
}

// Combinations bounds the members of the rule in which one viewer stands.
func (r *SharingRule) Combinations(s *schema.Schema) int {
	if !r.MatchesViewer() {
		return 0
	}
	n := 1
	for _, c := range r.Where {
		if own := s.User.Field(c.Viewer); own != nil {
			switch own.Type {
			case schema.Multireference:
				n *= schema.MaxReferences
			case schema.Multiselect:
				n *= len(own.Options)
			}
		}
		n = min(n, 1<<20)
	}
	return n
}

// MaxMembers bounds the sum of Combinations over the rules of an entity type: a
// viewer's list is a union of as many index ranges.
const MaxMembers = 1000
