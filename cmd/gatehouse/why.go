package main

import (
	"bufio"
	"context"
	"fmt"
	"slices"
	"strings"

	"gatehouse/internal/access"
	"gatehouse/internal/records"
	"gatehouse/internal/schema"
	"gatehouse/internal/user"
)

// whyLine is an explanation as --json prints it. The names of permission sets are
// null for the ownership of the tenant.
type whyLine struct {
	User   whyUser    `json:"user"`
	Entity string     `json:"entity"`
	Record string     `json:"record"`
	Owner  *string    `json:"owner"` // e-mail address
	Verbs  []whyVerb  `json:"verbs"`
	Ways   []whyWay   `json:"ways"`
	Fields []whyField `json:"fields"`
}

type whyUser struct {
	Email  string  `json:"email"`
	Type   string  `json:"type"`
	Role   *string `json:"role"`
	Active bool    `json:"active"`
}

type whyVerb struct {
	Verb    string    `json:"verb"`
	Allowed bool      `json:"allowed"`
	Code    *string   `json:"code"` // of the error that a request gets
	Sets    []*string `json:"permission_sets"`
	Reached bool      `json:"reached"`
}

type whyWay struct {
	Way     string      `json:"way"`
	Opens   []string    `json:"opens"`
	Reasons []whyReason `json:"reasons"`
	More    int         `json:"more"` // reasons that are left out
}

type whyReason struct {
	Text  string   `json:"text"`
	Opens []string `json:"opens"`
	Role  *string  `json:"role"`
	Set   *string  `json:"permission_set"`
}

type whyField struct {
	Name string    `json:"name"`
	Read []*string `json:"read"` // permission sets
	Edit []*string `json:"edit"`
}

func whyCommand(f *flags) action {
	f.forTenant()
	email := f.required("user", "e-mail `address` of the user")
	entity, record := f.required("entity", "`entity` type of the record"), f.required("record", "`id` of the record")
	verb := f.String("verb", "", "only this `verb`: read, update or delete")
	f.listing(", with every way and field")
	return func(ctx context.Context) error {
		if *verb != "" && !slices.Contains([]string{"read", "update", "delete"}, *verb) {
			return f.wrong("--verb %s: expected read, update or delete", *verb)
		}
		return f.onShares(ctx, func(s *sharing) error {
			e := &explanation{entity: *entity, record: *record}
			if err := s.explain(ctx, *email, e); err != nil {
				return err
			}
			if *verb != "" {
				e.why.Verbs = slices.DeleteFunc(e.why.Verbs, func(v records.VerbWhy) bool { return v.Verb.String() != *verb })
			}
			if f.asJSON {
				return jsonEncoder(f.stdout).Encode(e.line())
			}
			return e.print(f)
		})
	}
}

// explanation holds what the command prints.
type explanation struct {
	user           *user.User
	entity, record string
	owner          string // e-mail address of the record's owner; "" for a user
	parent         string // the entity type of the record that controls it, or ""
	why            *records.Why
}

// explain fills in an explanation of a record. It returns NOT_FOUND for a user, an
// entity type or a record that does not exist, and names which.
func (s *sharing) explain(ctx context.Context, email string, e *explanation) (err error) {
	if e.user, err = s.user(ctx, email); err != nil {
		return err
	}
	viewer, err := s.directory.Viewer(ctx, s.config, e.user.ID, true)
	if err != nil {
		return err
	}
	if e.why, err = s.session.Why(ctx, viewer, e.entity, e.record); err != nil {
		return err
	}
	if of := s.config.Schema.Entity(e.entity); of != nil && of.Controller() != nil {
		e.parent = of.Controller().Target
	}
	e.owner, err = s.emails(ctx)(e.why.Owner)
	return err
}

func (e *explanation) line() whyLine {
	w := whyLine{
		User:   whyUser{e.user.Email, string(e.user.Type), orNull(e.user.Role), e.user.Active},
		Entity: e.entity, Record: e.record, Owner: orNull(e.owner), Verbs: []whyVerb{}, Ways: []whyWay{}, Fields: []whyField{},
	}
	for _, v := range e.why.Verbs {
		w.Verbs = append(w.Verbs, whyVerb{v.Verb.String(), v.Code == "", orNull(string(v.Code)), setsOrNull(v.Sets), v.Reached})
	}
	for _, at := range e.why.Ways {
		way := whyWay{string(at.Cause), words(at.Verbs), []whyReason{}, at.More}
		for _, r := range at.Reasons {
			way.Reasons = append(way.Reasons, whyReason{r.Text, words(r.Verbs), orNull(r.Role), orNull(r.Set)})
		}
		w.Ways = append(w.Ways, way)
	}
	for _, at := range e.why.Fields {
		w.Fields = append(w.Fields, whyField{at.Name, setsOrNull(at.Read), setsOrNull(at.Edit)})
	}
	return w
}

// print writes a paragraph for each verb and a line for each field.
func (e *explanation) print(f *flags) error {
	out := bufio.NewWriter(f.stdout)
	fmt.Fprintln(out, printable(e.about()))
	if note := e.note(); note != "" {
		fmt.Fprintln(out, note)
	}
	for _, v := range e.why.Verbs {
		for i, sentence := range e.sentences(v) {
			head := strings.Repeat(" ", len(v.Verb.String())+2)
			if i == 0 {
				head = v.Verb.String() + ": "
			}
			fmt.Fprintln(out, head+printable(sentence))
		}
	}
	for _, at := range e.why.Fields {
		fmt.Fprintln(out, printable(fmt.Sprintf("field %s: read by %s; edit by %s", at.Name, named(at.Read), named(at.Edit))))
	}
	return out.Flush()
}

// about returns a text that names the user and the record of the explanation.
func (e *explanation) about() string {
	text := fmt.Sprintf("%s (%s", e.user.Email, e.user.Type)
	if e.user.Role != "" {
		text += ", role " + e.user.Role
	}
	text += ") and " + e.entity + " " + e.record
	if e.owner != "" {
		text += ", owned by " + e.owner
	}
	return text
}

// note returns a sentence on what else decides about the user's requests, or "".
func (e *explanation) note() string {
	switch external := e.user.Type == user.External; {
	case !e.user.Active && external:
		return "The user is deactivated: every API key of theirs is refused. An access token works until it expires, as follows."
	case !e.user.Active:
		return "The user is deactivated: every API key of theirs is refused. With an active user it would be as follows."
	case external:
		return "The user is external: entity defaults and all_entity_access do not apply to them."
	}
	return ""
}

// sentences returns the explanation of a verb: yes, with each reason, or no, with what
// is missing.
func (e *explanation) sentences(v records.VerbWhy) []string {
	reasons := e.reasons(v)
	if v.Code == "" {
		reasons = append(reasons, named(v.Sets)+" allows "+v.Verb.String()+" on "+e.entity)
		reasons[0] = "yes — " + reasons[0]
		return reasons
	}
	var missing []string
	if e.entity == schema.UserEntity && v.Verb == access.Delete {
		return []string{"no — users are not deleted here"}
	}
	if len(v.Sets) == 0 {
		missing = append(missing, e.unpermitted(v.Verb))
	}
	if !v.Reached {
		missing = append(missing, e.unreached(v.Verb))
	}
	for _, r := range reasons {
		missing = append(missing, "the record itself is open for it: "+r)
	}
	missing[0] = "no — " + missing[0]
	return missing
}

// reasons returns what opens the record for a verb.
func (e *explanation) reasons(v records.VerbWhy) (list []string) {
	more := 0
	for _, w := range e.why.Ways {
		for _, r := range w.Reasons {
			if r.Opens(v.Verb) {
				list = append(list, r.Text)
			}
		}
		if slices.Contains(w.Verbs, v.Verb) {
			more += w.More
		}
	}
	if more > 0 {
		list = append(list, fmt.Sprintf("and up to %s reasons more", thousands(int64(more))))
	}
	return list
}

// unpermitted says that no permission set allows a verb.
func (e *explanation) unpermitted(v access.Verb) string {
	switch len(e.user.Sets) {
	case 0:
		return fmt.Sprintf("the user has no permission set, so nothing allows %s on %s", v, e.entity)
	case 1:
		return fmt.Sprintf("%s does not allow %s on %s", named(e.user.Sets), v, e.entity)
	}
	return fmt.Sprintf("none of %s allows %s on %s", named(e.user.Sets), v, e.entity)
}

// unreached says that no way opens the record for a verb.
func (e *explanation) unreached(v access.Verb) string {
	switch {
	case e.entity == schema.UserEntity:
		return "an external user reaches their own row alone"
	case e.parent != "" && v == access.Read:
		return "only its " + e.parent + " decides, and the user may not read that"
	case e.parent != "":
		return "only its " + e.parent + " decides, and the user may not update that"
	case v == access.Delete:
		return "the user does not own the record, and has no role above its owner's; nothing else opens it for delete"
	}
	return fmt.Sprintf("the user does not own the record, and no role, share, rule or default opens it for %s", v)
}

// named returns a text that names permission sets.
func named(sets []string) string {
	if len(sets) == 0 {
		return "no permission set"
	}
	var list []string
	for _, set := range sets {
		if set == records.OwnerSet {
			list = append(list, "ownership of the tenant")
		} else {
			list = append(list, "permission set '"+set+"'")
		}
	}
	return strings.Join(list, ", ")
}

// setsOrNull returns null for the ownership of the tenant.
func setsOrNull(sets []string) []*string {
	list := []*string{}
	for _, set := range sets {
		list = append(list, orNull(set))
	}
	return list
}

func words(verbs []access.Verb) []string {
	list := []string{}
	for _, v := range verbs {
		list = append(list, v.String())
	}
	return list
}
