package tenant

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/fault"
)

// Change is one entry of the change history (contract G11). Before and After
// are nil where there is nothing; neither ever holds a secret.
type Change struct {
	ID     string `json:"id"`
	At     int64  `json:"-"`
	Actor  string `json:"actor"`  // who: a user's e-mail, or "operator" for the command line
	Action string `json:"action"` // create, update or delete
	Kind   string `json:"kind"`   // of the object: entity, role, api_key, …
	Name   string `json:"name"`
	Before any    `json:"before"`
	After  any    `json:"after"`
}

// History collects what one change of configuration changed.
type History struct {
	changes []Change
	kept    bool
}

// Keep keeps what was done and raises the version even when nothing is
// recorded: for what readers cannot see and writers must know of.
func (h *History) Keep() { h.kept = true }

// Record adds one object. The action follows from which of before and after
// is nil. Equal values are no change and are left out.
func (h *History) Record(kind, name string, before, after any) {
	action := "update"
	switch {
	case before == nil && after == nil:
		return
	case before == nil:
		action = "create"
	case after == nil:
		action = "delete"
	}
	h.changes = append(h.changes, Change{Action: action, Kind: kind, Name: name, Before: before, After: after})
}

// Changes is what was recorded so far.
func (h *History) Changes() []Change { return h.changes }

// ConfigTx is a transaction that holds the tenant's configuration exclusively and
// raises its version. Only Configure makes one. Every function that writes
// configuration takes a ConfigTx, so that none can be called outside Configure.
type ConfigTx struct{ configTx }

// configTx has an unexported name so that no other package can fill in ConfigTx.
type configTx = db.Tx

// Configure is the only write path of configuration. It takes the tenant's
// configuration exclusively and runs fn. If fn recorded a change, Configure raises
// the version, which tells every node of it, and writes the change history. If fn
// recorded none, nothing is kept (but see History.Keep). The tenant may not exist
// yet: fn creates it with Put. fn may run more than once.
//
// Configure returns CONFLICT while the tenant is being deleted, and otherwise what
// fn or the database returns.
func Configure(ctx context.Context, h db.Handle, actor string, clk clock.Clock, fn func(tx ConfigTx, log *History) error) error {
	err := h.Write(ctx, func(plain db.Tx) error {
		tx := ConfigTx{plain}
		if err := raise(ctx, tx, h.Tenant()); err != nil {
			return err
		}
		log := &History{}
		if err := fn(tx, log); err != nil {
			return err
		}
		if len(log.changes) == 0 && !log.kept {
			return errUnchanged
		}
		now := clk.Now()
		ids := changeIDs(now, len(log.changes))
		for i, c := range log.changes {
			before, err := encode(c.Before)
			if err != nil {
				return err
			}
			after, err := encode(c.After)
			if err != nil {
				return err
			}
			_, err = tx.Exec(ctx, `INSERT INTO config_changes
				(tenant_id, change_id, changed_at, actor, action, kind, name, before_value, after_value)
				VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
				ids[i], clock.Micros(now), actor, c.Action, c.Kind, c.Name, before, after)
			if err != nil {
				return err
			}
		}
		return nil
	})
	if errors.Is(err, errUnchanged) {
		return nil
	}
	return err
}

// changeIDs returns the ids of n changes of one instant, in order: the history is
// read in the order of ids, and so keeps the one in which changes were recorded.
func changeIDs(now time.Time, n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = clock.NewID(now)
	}
	slices.Sort(ids)
	return ids
}

// raise takes the tenant's configuration exclusively and raises its version.
// Of a tenant that does not exist yet there is no row to hold: whoever would
// make it holds its clock instead, and looks again.
func raise(ctx context.Context, tx ConfigTx, id ID) error {
	const sql = `UPDATE tenants SET version = version + 1 WHERE tenant_id = $1`
	n, err := tx.Exec(ctx, sql)
	if err != nil || n > 0 {
		return err
	}
	_, err = tx.Exec(ctx, `INSERT INTO tenant_clocks (tenant_id, last) VALUES ($1, 0)
		ON CONFLICT (tenant_id) DO UPDATE SET last = tenant_clocks.last`)
	if err != nil {
		return err
	}
	gone, err := deleting(ctx, tx, "")
	if err != nil {
		return err
	}
	if gone {
		return fault.New(fault.Conflict, "tenant %s is being deleted: its name is free %d s after that began, when a server, or tenant delete once more, has finished it",
			id, int(deletionRest.Seconds()))
	}
	_, err = tx.Exec(ctx, sql)
	return err
}

// errUnchanged rolls a change of configuration back that changed nothing.
var errUnchanged = errors.New("nothing changed")

func encode(v any) (any, error) {
	if v == nil {
		return nil, nil
	}
	b, err := json.Marshal(v)
	return string(b), err
}

// Changes reads the change history, newest first, at most limit entries.
func Changes(ctx context.Context, q db.Querier, limit int) ([]Change, error) {
	var list []Change
	err := EachChange(ctx, q, ChangeFilter{Limit: limit}, func(c Change) error { list = append(list, c); return nil })
	return list, err
}

// ChangeFilter says which changes are asked for; its zero value asks for all.
type ChangeFilter struct {
	Kind string // of the object, as Change has it
	// Kinds are those of which one is asked for, in the place of Kind; nil asks for all.
	Kinds []string
	Name  string // of the object
	Actor string // who, as Change has it, or one of the two users that it names
	Limit int    // 0 for all
}

// EachChange calls each with the entries of the change history, newest first, a few changes in memory
// at a time. Nothing of the database is held while each runs: its reader may be a
// terminal, and a long read would keep SQLite's log of writes from being cut.
func EachChange(ctx context.Context, q db.Querier, f ChangeFilter, each func(Change) error) error {
	below, left := "", cmp.Or(f.Limit, math.MaxInt32)
	for left > 0 {
		part := f
		part.Limit = min(left, changesAtOnce)
		var page []Change
		next, err := ChangesBelow(ctx, q, part, below, func(c Change) bool { page = append(page, c); return true })
		if err != nil {
			return err
		}
		for _, c := range page {
			if err := each(c); err != nil {
				return err
			}
		}
		if next == "" {
			return nil
		}
		below, left = next, left-len(page)
	}
	return nil
}

// changesAtOnce are in memory together; one may have all the source of a component, twice.
const changesAtOnce = 32

// changeWindow is how many changes ChangesBelow looks at, so that a filter that few match
// does not make it read all.
const changeWindow = 5000

// errTaken ends the reading of changes.
var errTaken = errors.New("enough changes")

// ChangesBelow calls each with the changes that were made before the one with the id below,
// or the last ones for "", newest first, up to f.Limit, until each returns false for one that
// it does not take. It looks at 5,000 changes at most. next is what below is to be for those
// that follow, "" where there are none: there may be some also when each was not called.
func ChangesBelow(ctx context.Context, q db.Querier, f ChangeFilter, below string, each func(Change) bool) (next string, err error) {
	below = cmp.Or(below, "~") // which sorts behind every id
	bottom, looked := "", 0
	err = q.Query(ctx, `SELECT min(change_id), count(*) FROM
		(SELECT change_id FROM config_changes WHERE tenant_id = $1 AND change_id < $2 ORDER BY change_id DESC LIMIT `+strconv.Itoa(changeWindow)+`) w`,
		func(r db.Row) error {
			if !r.Null(0) {
				bottom, looked = r.Text(0), int(r.Int(1))
			}
			return nil
		}, below)
	if err != nil || looked == 0 {
		return "", err
	}
	args := []any{below, f.Limit + 1, f.Kind, f.Name, f.Actor, likeActor(f.Actor), bottom}
	of := ""
	if f.Kinds != nil {
		places := []string{"''"} // of no kind
		for _, kind := range f.Kinds {
			args = append(args, kind)
			places = append(places, "$"+strconv.Itoa(len(args)+1))
		}
		of = " AND kind IN (" + strings.Join(places, ", ") + ")"
	}
	last, taken := below, 0
	err = q.Query(ctx, `SELECT change_id, changed_at, actor, action, kind, name, before_value, after_value
		FROM config_changes WHERE tenant_id = $1 AND change_id < $2 AND change_id >= $8 AND ($4 = '' OR kind = $4) AND ($5 = '' OR name = $5)
		AND ($6 = '' OR actor = $6 OR actor LIKE $7 || ' as %' ESCAPE '\' OR actor LIKE '% as ' || $7 ESCAPE '\')`+of+`
		ORDER BY change_id DESC LIMIT $3`, func(r db.Row) error {
		c := Change{ID: r.Text(0), At: r.Int(1), Actor: r.Text(2), Action: r.Text(3), Kind: r.Text(4), Name: r.Text(5)}
		if !r.Null(6) {
			c.Before = json.RawMessage(r.Text(6))
		}
		if !r.Null(7) {
			c.After = json.RawMessage(r.Text(7))
		}
		if taken == f.Limit || !each(c) {
			return errTaken
		}
		last, taken = c.ID, taken+1
		return nil
	}, args...)
	switch {
	case errors.Is(err, errTaken):
		return last, nil
	case err != nil || looked < changeWindow:
		return "", err
	}
	return bottom, nil
}

// likeActor returns an actor as a pattern of LIKE that matches it alone.
func likeActor(actor string) string {
	return strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`).Replace(actor)
}

// ChangedKinds lists the kinds of objects that the change history tells of, in order.
func ChangedKinds(ctx context.Context, q db.Querier) (kinds []string, err error) {
	err = q.Query(ctx, `SELECT DISTINCT kind FROM config_changes WHERE tenant_id = $1 ORDER BY kind`,
		func(r db.Row) error { kinds = append(kinds, r.Text(0)); return nil })
	return kinds, err
}
