package config

import (
	"context"
	"errors"

	"gatehouse/internal/access"
	"gatehouse/internal/db"
	"gatehouse/internal/fault"
	"gatehouse/internal/records"
	"gatehouse/internal/user"
)

// errUnprobed rolls a plan back that cannot be judged before the database was asked
// about fields.
type errUnprobed struct{ fields []fieldAt }

func (errUnprobed) Error() string { return "config: fields were not asked about yet" }

// allowed judges the plan. It returns *Problems for what its author may not do.
func (w *writer) allowed() error {
	p := w.p
	var failed error
	asks := func(holds func(context.Context, db.Querier, *access.Config, user.ID) (bool, error)) func(user.ID) bool {
		return func(id user.ID) bool {
			is, err := holds(w.ctx, w.tx, w.config, id)
			failed = errors.Join(failed, err)
			return is || err != nil
		}
	}
	p.owns, p.shared = asks(records.Owns), asks(records.Shared)
	p.judge()
	if failed != nil {
		return failed
	}
	if err := p.err(); err != nil {
		return err
	}
	if len(p.unprobed) > 0 {
		return errUnprobed{p.unprobed}
	}
	return nil
}

// probe asks whether there are values of fields that a plan adds. It reads outside of
// any transaction, because there may be many records: nobody can write a value of a
// field that is not there.
func (a *application) probe(ctx context.Context, h db.Handle, fields []fieldAt) error {
	for _, f := range fields {
		var holding int64
		var err error
		if f.stored == "" {
			holding, _, err = user.Holding(ctx, h, f.member)
		} else {
			holding, _, err = records.Holding(ctx, h, f.stored, f.member)
		}
		if err != nil {
			return err
		}
		a.probed[f] = holding > 0
	}
	return nil
}

// known replaces a refusal that tells how many records stand against a change, where
// the author of the change may not know.
func (a *application) known(err error) error {
	var f *fault.Error
	if a.author.free || !errors.As(err, &f) {
		return err
	}
	entity, _ := f.Details["entity"].(string)
	if entity == "" || a.author.knows(a.config, entity) {
		return err
	}
	less := fault.New(fault.Conflict, "stored records of entity %s do not permit this change", entity).With("entity", entity)
	var found *Problems
	if !errors.As(err, &found) {
		return less
	}
	told := &Problems{Left: found.Left}
	for _, one := range found.List {
		if one.Cause != nil && fault.CodeOf(one.Cause) == fault.Conflict {
			one.Text, one.Reason, one.Cause = less.Message, "", less
		}
		told.Note(one)
	}
	return told
}

// tell leaves out of an effect what the author of the change may not know: how many
// records there are and who the users are.
func (a *application) tell(e *Effect) {
	if a.author.free {
		return
	}
	for i := range e.Reindexed {
		if v := &e.Reindexed[i]; !a.author.knows(a.config, v.Entity) {
			v.Records, v.More, v.Hidden = 0, false, true
		}
	}
	for i := range e.Fields {
		if v := &e.Fields[i]; !a.tellsField(v.Entity) {
			v.Holding, v.Of, v.Hidden = 0, 0, true
		}
	}
	if !a.author.may(access.ManageUsers) {
		e.Losing.Names, e.Keys.Names = nil, nil
	}
	if !a.author.may(access.ManageEndpoints) {
		e.Endpoints.Names = nil
	}
}

func (a *application) tellsField(entity string) bool {
	if entity == "" {
		return a.author.may(access.ManageUsers)
	}
	return a.author.knows(a.config, entity)
}
