package config

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/fault"
	"gatehouse/internal/user"
)

// State is a tenant's configuration as it is stored, at one version.
type State struct{ s *state }

// Load reads the configuration of a tenant, all users included. It returns
// NOT_FOUND when there is no such tenant, and OVERLOADED when it changes too fast
// to be read.
func Load(ctx context.Context, h db.Handle) (*State, error) {
	s, err := exported(ctx, h, true)
	if err != nil {
		return nil, err
	}
	return &State{s}, nil
}

// LoadObjects is Load without users: there may be many.
func LoadObjects(ctx context.Context, h db.Handle) (*State, error) {
	s, err := exported(ctx, h, false)
	if err != nil {
		return nil, err
	}
	return &State{s}, nil
}

// UserObjects returns users with their versions, in order.
func UserObjects(users []*user.User) (list []Object) {
	for _, u := range users {
		list = append(list, userKind.object(&state{users: map[string]*user.User{u.Key: u}}, u.Key))
	}
	return list
}

// UserObject returns a user with their version. It returns NOT_FOUND when there is no
// such user.
func UserObject(ctx context.Context, h db.Handle, address string) (Object, error) {
	u, err := user.ByEmail(ctx, h, address)
	if errors.Is(err, user.ErrUnknown) {
		return Object{}, noUser(address)
	}
	if err != nil {
		return Object{}, err
	}
	return userKind.object(&state{users: map[string]*user.User{u.Key: u}}, u.Key), nil
}

// Object returns one object of a kind. It returns VALIDATION when there is no such kind,
// and NOT_FOUND when there is no such object.
func (s *State) Object(kindName, name string) (Object, error) {
	k, ok := find(kindName)
	if !ok {
		return Object{}, fault.New(fault.Validation, "there is no kind of object %q", kindName)
	}
	if key := k.key(name); slices.Contains(k.keys(s.s), key) {
		return k.object(s.s, key), nil
	}
	return Object{}, fault.New(fault.NotFound, "there is no %s %s", words(k.name), printableName(name))
}

// Version returns the version of the whole configuration.
func (s *State) Version() int64 { return s.s.tenant.Version }

// Objects returns the objects of a kind, with their versions, by name. It returns
// VALIDATION when there is no such kind.
func (s *State) Objects(kindName string) ([]Object, error) {
	k, ok := find(kindName)
	if !ok {
		return nil, fault.New(fault.Validation, "there is no kind of object %q", kindName)
	}
	var list []Object
	for _, key := range k.keys(s.s) {
		list = append(list, k.object(s.s, key))
	}
	return list, nil
}

// Export returns the configuration: applying it changes nothing. Secrets and
// passwords are left out.
func (s *State) Export() *Value {
	var pairs []pair
	for _, section := range sections {
		pairs = append(pairs, section.export(s.s)...)
	}
	return block(pairs...)
}

// Check reports what is wrong with m, alone or against what is stored, without
// trying the change on the records. Its errors are those of Apply, which may find
// more.
func Check(ctx context.Context, h db.Handle, clk clock.Clock, by Author, m *Spec, opts Options) error {
	a, err := start(ctx, h, clk, by, m, opts)
	if err != nil {
		return err
	}
	a.checkOnly = true
	return a.apply(ctx, h)
}

// Plan is a change of configuration that was worked out and tried against the
// data, and of which nothing was kept. It is shown, as JSON too, before it is
// written.
type Plan struct {
	Result
	by      Author
	m       *Spec
	opts    Options
	changes []change
	before  *state
	paths   []string
}

// NewPlan works out what Apply would do. Its errors are those of Apply. What the author
// may not know is left out of its effect.
func NewPlan(ctx context.Context, h db.Handle, clk clock.Clock, by Author, m *Spec, opts Options) (*Plan, error) {
	opts.DryRun = true
	a, err := start(ctx, h, clk, by, m, opts)
	if err == nil {
		err = a.apply(ctx, h)
	}
	if err != nil {
		return nil, err
	}
	r, err := a.result(ctx, h)
	if err != nil {
		return nil, err
	}
	return &Plan{Result: *r, by: by, m: m, opts: opts, changes: a.changes, before: a.before, paths: a.paths}, nil
}

// MarshalJSON writes what the plan is: each change with the path in what was given
// and the version of the object that it was worked out against, and the effect.
func (p *Plan) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Tenant   string          `json:"tenant"`
		Changes  []PlannedChange `json:"changes"`
		Gone     []string        `json:"gone"`
		Effect   *Effect         `json:"effect"`
		Warnings []string        `json:"warnings"`
	}{string(p.Tenant), p.Planned(), slices.Concat([]string{}, p.Gone), p.Effect, slices.Concat([]string{}, p.Warnings)})
}

// PlannedChange is a change of a plan: with the path in what was given, "" for what was
// not, and the Object.Name and the version of the object that it was worked out against.
type PlannedChange struct {
	Change
	Object      string       `json:"object"`
	Path        string       `json:"path,omitempty"`
	Version     string       `json:"version"`
	Differences []Difference `json:"differences,omitempty"`
}

// Planned returns the changes of the plan.
func (p *Plan) Planned() []PlannedChange {
	list := []PlannedChange{}
	for i, c := range p.changes {
		list = append(list, PlannedChange{p.Changes[i], c.was, p.paths[i], c.version(p.before), p.Changes[i].Differences()})
	}
	return list
}

// Expected is a change that was shown to who wants it made: of an object of a kind, by
// its Object.Name, at a version.
type Expected struct{ Kind, Object, Version string }

// asExpected returns CONFLICT unless a plan changes the objects that its author has seen
// it change, each at the version that they have seen.
func (p *plan) asExpected(shown []Expected) error {
	if shown == nil {
		return nil
	}
	for _, c := range p.changes {
		if !slices.Contains(shown, Expected{c.kind, c.was, c.version(p.before)}) {
			return c.conflict(p.before)
		}
	}
	for _, e := range shown {
		if !slices.ContainsFunc(p.changes, func(c change) bool { return c.kind == e.Kind && c.was == e.Object }) {
			k, ok := find(e.Kind)
			if !ok {
				return fault.New(fault.Validation, "there is no kind of object %q", e.Kind)
			}
			return k.object(p.before, e.Object).conflict(strings.TrimSpace(words(e.Kind)+" "+printableName(e.Object))+" was changed meanwhile", nil)
		}
	}
	return nil
}

// Write makes the change as Apply does, recorded for its author, if it is still the one
// that was planned. It returns CONFLICT, as Apply does for an edit of an older
// version, when an object that it concerns is not as it was when the plan was made.
func (p *Plan) Write(ctx context.Context, h db.Handle, clk clock.Clock) (*Result, error) {
	opts := p.opts
	opts.DryRun = false
	a, err := start(ctx, h, clk, p.by, p.m, opts)
	if err != nil {
		return nil, err
	}
	a.planned = p
	if err := a.apply(ctx, h); err != nil {
		return nil, err
	}
	return a.result(ctx, h)
}

// unchanged returns CONFLICT unless the change worked out now is the planned one.
func (p *Plan) unchanged(now *plan) error {
	if p == nil {
		return nil
	}
	for _, was := range p.changes {
		is := slices.IndexFunc(now.changes, func(c change) bool { return c.kind == was.kind && c.key == was.key })
		if is < 0 || !was.same(p.before, now.changes[is], now.before) {
			return was.conflict(now.before)
		}
	}
	for _, is := range now.changes {
		if !slices.ContainsFunc(p.changes, func(c change) bool { return c.kind == is.kind && c.key == is.key }) {
			return is.conflict(now.before)
		}
	}
	return nil
}

// same reports whether two changes do the same to the same version of an object.
func (c change) same(before *state, other change, otherBefore *state) bool {
	return encoded(c.before) == encoded(other.before) && encoded(c.after) == encoded(other.after) &&
		c.version(before) == other.version(otherBefore)
}

// version is that of the object which the change was worked out against.
func (c change) version(before *state) string { return c.stored(before).Version }

func (c change) stored(s *state) Object {
	k, _ := find(c.kind)
	return k.object(s, c.was)
}

func (c change) conflict(now *state) error {
	is := c.stored(now)
	return is.conflict(fmt.Sprintf("%s was changed meanwhile", strings.TrimSpace(words(c.kind)+" "+printableName(c.name))), c.after)
}

// paths are those of the changes, in what was given; "" for what was not given.
func (p *plan) paths() []string {
	list := make([]string, len(p.changes))
	for i, c := range p.changes {
		k, _ := find(c.kind)
		if k.section != "" {
			list[i] = p.m.place(k.section, c.key).Path
		}
	}
	return list
}

// Objects is Load and State.Objects.
func Objects(ctx context.Context, h db.Handle, kindName string) ([]Object, error) {
	s, err := Load(ctx, h)
	if err != nil {
		return nil, err
	}
	return s.Objects(kindName)
}

// Export is Load and State.Export.
func Export(ctx context.Context, h db.Handle) (*Value, error) {
	s, err := Load(ctx, h)
	if err != nil {
		return nil, err
	}
	return s.Export(), nil
}
