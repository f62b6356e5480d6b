package records

import (
	"cmp"
	"context"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/access"
	"gatehouse/internal/clock"
	"gatehouse/internal/fault"
	"gatehouse/internal/schema"
	"gatehouse/internal/user"
)

// view is what the verbs work on: the stored records and users, in a
// transaction (txView), or those of a unit of work (UnitSession). A view
// belongs to one viewer.
type view interface {
	// find returns a record that the viewer may see, and in row.allowed whether
	// verb reaches it. It returns errUnseen for any other. The caller may change
	// the row.
	find(ctx context.Context, r *access.EntityRights, id string, verb access.Verb) (*row, error)
	// fresh returns a new record without owner and data.
	fresh(ctx context.Context) (*row, error)
	// own sets the owner of a record, and the owner's role. It returns VALIDATION
	// where there is no such user, or none whom the viewer may name (contract A20).
	own(ctx context.Context, e *schema.Entity, rec *row, owner user.ID) error
	// reaches reports whether a record exists and the viewer may perform verb on
	// it.
	reaches(ctx context.Context, entity, id string, verb access.Verb) (bool, error)
	// free reports whether no record but rec has a value of a unique field.
	free(ctx context.Context, e *schema.Entity, f *schema.Field, key string, rec *row) (bool, error)
	// put stores rec, which is a record after the patch p.
	put(ctx context.Context, r *access.EntityRights, rec *row, p *patch) error
	// drop deletes a record.
	drop(ctx context.Context, r *access.EntityRights, rec *row) error
	// principal returns the stored form of a principal that the viewer may name,
	// or VALIDATION.
	principal(ctx context.Context, with With) (string, error)
	// shareWith returns the share of a record with a stored principal, without
	// access where there is none, and how many shares the record has.
	shareWith(ctx context.Context, e *schema.Entity, rec *row, to string) (Share, int, error)
	// putShare stores a share of a record with a stored principal, new or changed.
	putShare(ctx context.Context, r *access.EntityRights, rec *row, to string, share Share) error
	// dropShare deletes a share.
	dropShare(ctx context.Context, r *access.EntityRights, rec *row, to string) error
	// findUser returns a user, or errUnseen. The caller may change it.
	findUser(ctx context.Context, id user.ID) (*user.User, error)
	// putUser stores the profile of a user that a body has changed. before is
	// the size of the custom fields before the change.
	putUser(ctx context.Context, r *access.EntityRights, u *user.User, before int, members []Member) error
}

var (
	_ view = (*txView)(nil)
	_ view = (*UnitSession)(nil)
)

// patch is the effect of a body on a record: values by schema.Field.Index.
type patch struct {
	in             *input           // the body; nil for a new record
	was            standing         // zero for a new record
	after, changed []jsontext.Value // all values; those that change, nil for others
}

// rights returns the viewer's rights on an entity type, users included, if they
// include verb. id is the record that the verb is for, "" for none. It returns
// NOT_FOUND or FORBIDDEN otherwise.
func (s *Session) rights(entity, id string, verb access.Verb) (*access.EntityRights, error) {
	if entity == schema.UserEntity {
		return s.rightsOnUsers(id, verb)
	}
	return s.on(entity, verb)
}

// draft checks the rest of the body of a new record, of which checkCreate has said in.
func (s *Session) draft(ctx context.Context, r *access.EntityRights, in *input, reaches reachesFunc) error {
	if err := s.checkOwner(r, in, s.viewer.UserID()); err != nil {
		return err
	}
	if err := checkReferences(ctx, r.Entity, in, reaches); err != nil {
		return err
	}
	return in.err()
}

// create adds a record that draft has checked.
func (s *Session) create(ctx context.Context, v view, r *access.EntityRights, in *input) (Record, error) {
	rec, err := v.fresh(ctx)
	if err != nil {
		return nil, err
	}
	rec.data = document(r.Entity, in.values, nil)
	if err := v.own(ctx, r.Entity, rec, cmp.Or(in.owner, s.viewer.UserID())); err != nil {
		return nil, err
	}
	if err := checkUnique(ctx, v, r.Entity, rec, in.values); err != nil {
		return nil, err
	}
	out, err := s.held(s.show(r, rec)) // before the change, which a refusal must prevent
	if err != nil {
		return nil, err
	}
	return out, v.put(ctx, r, rec, &patch{after: in.values, changed: in.values})
}

// update merges a body into a record. in is what checkUpdate says of members.
func (s *Session) update(ctx context.Context, v view, r *access.EntityRights, id string, members []Member, in *input) (Record, error) {
	if r.Entity.Name == schema.UserEntity {
		return s.updateUser(ctx, v, r, id, members)
	}
	rec, err := findFor(ctx, v, r, id, access.Update, "change")
	if err != nil {
		return nil, err
	}
	return s.change(ctx, v, r, rec, in)
}

// change merges a body into a record that was found for it.
func (s *Session) change(ctx context.Context, v view, r *access.EntityRights, rec *row, in *input) (Record, error) {
	if err := s.meets(r, rec.version, func() Record { return render(nil, r, rec) }); err != nil {
		return nil, err
	}
	p, err := s.edit(ctx, v, r, rec, in)
	if err != nil {
		return nil, err
	}
	out, err := s.held(s.show(r, rec)) // before the change, as in create
	if err != nil || p == nil {
		return out, err
	}
	return out, v.put(ctx, r, rec, p)
}

// edit applies a body to a record in memory. An empty body changes nothing, not
// even updated_at, and gives no patch.
func (s *Session) edit(ctx context.Context, v view, r *access.EntityRights, rec *row, body *input) (*patch, error) {
	if len(body.forbidden) > 0 {
		return nil, errForbidden(body.forbidden)
	}
	in := body.again() // a transaction may run several times
	if err := s.checkOwner(r, in, rec.owner); err != nil {
		return nil, err
	}
	in.checkGiven(rec)
	p := in.patch(r.Entity, rec)
	p.in = body
	in.weigh(r.Entity, p.was.values, p.after, rec.data)
	changed := &input{values: p.changed, reasons: in.reasons}
	if err := checkReferences(ctx, r.Entity, changed, v.reaches); err != nil {
		return nil, err
	}
	if err := changed.err(); err != nil || in.empty || s.keepEqual && in.changesNothing(rec, p) {
		return nil, err
	}
	if err := checkUnique(ctx, v, r.Entity, rec, p.changed); err != nil {
		return nil, err
	}
	rec.data = document(r.Entity, p.after, rec.data)
	// updated_at never decreases, even if the clock was set back.
	rec.updatedAt = max(clock.Micros(s.store.clock.Now()), rec.updatedAt)
	if in.owner != "" && in.owner != rec.owner {
		return p, v.own(ctx, r.Entity, rec, in.owner)
	}
	return p, nil
}

// patch returns what a checked body changes of a record.
func (in *input) patch(e *schema.Entity, rec *row) *patch {
	before := stored(e, rec.data)
	p := &patch{was: rec.standing(before, nil), after: slices.Clone(before), changed: make([]jsontext.Value, len(before))}
	for i, v := range in.values {
		if v == nil {
			continue
		}
		p.after[i] = v
		if !same(before[i], v) {
			p.changed[i] = v
		}
	}
	return p
}

// changesNothing reports whether a body has the values that the record has.
func (in *input) changesNothing(rec *row, p *patch) bool {
	return (in.owner == "" || in.owner == rec.owner) && !slices.ContainsFunc(p.changed, func(v jsontext.Value) bool { return v != nil })
}

// remove deletes a record.
func (s *Session) remove(ctx context.Context, v view, r *access.EntityRights, id string) error {
	rec, err := findFor(ctx, v, r, id, access.Delete, "delete")
	if err != nil {
		return err
	}
	if err := s.meets(r, rec.version, func() Record { return render(nil, r, rec) }); err != nil {
		return err
	}
	return v.drop(ctx, r, rec)
}

// findFor returns a record that verb reaches. It returns NOT_FOUND where the
// viewer may not see it, and FORBIDDEN, with word for what they may not do,
// where they see it and verb does not reach it.
func findFor(ctx context.Context, v view, r *access.EntityRights, id string, verb access.Verb, word string) (*row, error) {
	rec, err := v.find(ctx, r, id, verb)
	if err == nil {
		err = rec.mayBe(word)
	}
	return rec, err
}

// mayBe returns FORBIDDEN for a record that was found and that the verb does not reach.
func (rec *row) mayBe(word string) error {
	if !rec.allowed {
		return fault.New(fault.Forbidden, "you may not %s this record", word)
	}
	return nil
}

// show returns what the viewer may see of a record they wrote.
func (s *Session) show(r *access.EntityRights, rec *row) Record {
	if !r.May(access.Read) {
		return renderID(rec.id)
	}
	return render(nil, r, rec)
}

// held returns rec unless the holder refuses it.
func (s *Session) held(rec Record) (Record, error) {
	if err := s.hold(len(rec)); err != nil {
		return nil, err
	}
	return rec, nil
}

// checkOwner allows only the tenant owner and viewers with all_entity_access or
// assign_owner to name an owner other than the present one (contract R7). It
// returns FORBIDDEN otherwise. Whom they may name is checked by view.own.
func (s *Session) checkOwner(r *access.EntityRights, in *input, present user.ID) error {
	if in.owner == "" || in.owner == present {
		return nil
	}
	if !r.MayName() {
		return fault.New(fault.Forbidden, "only the tenant owner or a user with all_entity_access or assign_owner may set owner_id").
			With("fields", map[string]string{"owner_id": "you may not set another owner"})
	}
	return nil
}

// reachesFunc reports whether a record exists and the viewer may perform verb on
// it.
type reachesFunc func(ctx context.Context, entity, id string, verb access.Verb) (bool, error)

// checkReferences fails each reference to a record that does not exist or that
// the viewer may not see, both with the same reason (contract R10). It returns
// FORBIDDEN for a parent that controls the record and that the viewer may not
// update (contract A21).
func checkReferences(ctx context.Context, e *schema.Entity, in *input, reaches reachesFunc) error {
	for i, f := range e.Fields {
		if !f.Refers() || in.values[i] == nil {
			continue
		}
		for _, v := range f.Elements(in.values[i]) {
			id := schema.Unquote(v)
			ok, err := reaches(ctx, f.Target, id, access.Read)
			if err != nil {
				return err
			}
			if !ok {
				in.fail(f.Name, noSuch(f))
				break
			}
			if f == e.Controller() {
				if err := checkParent(ctx, f, id, reaches); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// checkParent returns FORBIDDEN where the viewer may not update the record that
// is to control another one through the field f, and VALIDATION where they may
// no longer see it.
func checkParent(ctx context.Context, f *schema.Field, id string, reaches reachesFunc) error {
	ok, err := reaches(ctx, f.Target, id, access.Update)
	if err != nil || ok {
		return err
	}
	switch sees, err := reaches(ctx, f.Target, id, access.Read); {
	case err != nil:
		return err
	case !sees:
		return fault.Fields("some fields are not valid", map[string]string{f.Name: noSuch(f)})
	}
	return fault.New(fault.Forbidden, "you may not change this %s, and so not what is below it", f.Target).
		With("fields", map[string]string{f.Name: "you may not change this record of " + f.Target})
}

// noSuch is the reason for a reference to what does not exist, or what the viewer
// may not see.
func noSuch(f *schema.Field) string {
	if f.Target == schema.UserEntity {
		return "there is no such user"
	}
	return "there is no such record of " + f.Target
}

// checkUnique returns a CONFLICT that names every field whose value another
// record has (contract R11). In a transaction the unique index decides in the
// end: it finds a value that another transaction takes at the same time.
func checkUnique(ctx context.Context, v view, e *schema.Entity, rec *row, values []jsontext.Value) error {
	taken := map[string]string{}
	for i, f := range e.Fields {
		key, ok := uniqueKey(f, values[i])
		if !ok {
			continue
		}
		free, err := v.free(ctx, e, f, key, rec)
		if err != nil {
			return err
		}
		if !free {
			taken[f.Name] = "the value is taken"
		}
	}
	if len(taken) > 0 {
		return conflict(taken)
	}
	return nil
}

func conflict(fields map[string]string) error {
	return fault.New(fault.Conflict, "a unique field's value is taken").With("fields", fields)
}
