package records_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/access"
	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/fault"
	"gatehouse/internal/records"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// queued runs calls that change one record while another transaction holds it.
// Each call starts once the previous one waits for the record, so that they get
// the record in order. It returns the errors of the calls.
func (h *house) queued(entity, id string, calls ...func() error) []error {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	waiting := func(n int) {
		for ctx.Err() == nil && h.waiting(ctx) < n {
			time.Sleep(time.Millisecond)
		}
	}
	results := make([]chan error, len(calls))
	err := h.d.For(h.tenant).Write(ctx, func(tx db.Tx) error {
		err := tx.Query(ctx, `SELECT 1 FROM records WHERE tenant_id = $1 AND entity = $2 AND record_id = $3`+tx.Dialect().ForUpdate,
			func(db.Row) error { return nil }, entity, id)
		for i, call := range calls {
			results[i] = make(chan error, 1)
			go func() { results[i] <- call() }()
			waiting(i + 1)
		}
		return err
	})
	if err != nil || ctx.Err() != nil {
		h.t.Fatal(err, ctx.Err())
	}
	errs := make([]error, len(calls))
	for i, r := range results {
		errs[i] = <-r
	}
	return errs
}

// waiting counts the transactions that wait for another one.
func (h *house) waiting(ctx context.Context) (n int) {
	if h.d.Engine() == db.SQLite {
		return h.d.Stats().WritesQueued
	}
	who, among := "pid", "pg_stat_activity"
	if h.d.Dialect().Distributed { // they wait on a worker
		who, among = "global_pid", "citus_stat_activity"
	}
	err := h.d.Unscoped("a test looks for waiting transactions").Query(ctx, `SELECT count(DISTINCT `+who+`) FROM `+among+`
		WHERE datname = current_database() AND wait_event_type = 'Lock'`, func(r db.Row) error { n = int(r.Int(0)); return nil })
	if err != nil {
		h.t.Error(err)
	}
	return n
}

// Permissions are checked when the viewer's transaction has locked the record,
// not when it began to wait for it.
func TestWhoWaitsForARecordIsHeldToTheNewState(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := acme(t, d)
		h.configure(func(ctx context.Context, tx tenant.ConfigTx) error {
			return access.PutRule(ctx, tx, &access.SharingRule{
				Entity: "contact", Where: []access.Condition{{Field: "stage", Value: jsontext.Value(`"won"`)}},
				ShareWithRole: "support", Access: access.Edit,
			})
		})
		h.user("uwe", user.User{Role: "support", Sets: []string{"work"}})
		ctx, sam, ada, uwe := t.Context(), h.as("sam"), h.as("ada"), h.as("uwe")
		mine, viewer := access.UserPrincipal(user.ID(h.ids["uwe"])), viewer(h, "uwe")
		type calls = func(id string) func() error
		update := func(s *records.Session, text string) calls {
			return func(id string) func() error {
				return func() error { _, err := s.Update(ctx, "contact", id, body(t, text)); return err }
			}
		}
		notes := update(uwe, `{"note": "uwe"}`)
		run := func(id string) func() error {
			return func() error {
				u := h.store.Begin(h.config())
				defer u.Close()
				if _, err := u.As(viewer).Update(ctx, "contact", id, body(t, `{"note": "uwe"}`)); err != nil {
					return err
				}
				return u.Commit(ctx, nil)
			}
		}
		batch := func(id string) func() error {
			return func() error {
				done, err := uwe.Batch(ctx, records.Batch{Entity: "contact", Items: []records.Item{updating(t, id, `{"note": "uwe"}`)}})
				if err == nil && done[0].Err != nil {
					err = done[0].Err
				}
				return err
			}
		}
		share := func(level access.Level) calls {
			return func(id string) func() error {
				return func() error { return ada.Share(ctx, "contact", id, records.Share{Principal: mine, Access: level}) }
			}
		}
		unshare := func(id string) func() error { return func() error { return sam.Unshare(ctx, "contact", id, mine) } }
		const lost = "it runs again"
		codeOf := func(err error) fault.Code {
			if errors.Is(err, records.ErrLost) {
				return lost
			}
			return fault.CodeOf(err)
		}
		for _, c := range []struct {
			name, owner, stage string
			shared             bool
			first, then        calls
			want               fault.Code
			note               any
		}{
			{"the share is taken back", "sam", "new", true, unshare, notes, fault.NotFound, nil},
			{"the share is taken back from a run", "sam", "new", true, unshare, run, lost, nil},
			{"the share is taken back from a batch", "sam", "new", true, unshare, batch, fault.NotFound, nil},
			{"the share stays, for a batch", "sam", "new", true, share(access.Edit), batch, "", "uwe"},
			{"the share is for reading alone", "sam", "new", true, share(access.ReadOnly), notes, fault.Forbidden, nil},
			{"the share stays", "sam", "new", true, share(access.Edit), notes, "", "uwe"},
			{"the rule holds no more", "sam", "won", false, update(sam, `{"stage": "lost"}`), notes, fault.NotFound, nil},
			{"the owner is another", "uwe", "new", false, update(ada, `{"owner_id": "`+h.ids["sam"]+`"}`), notes, fault.NotFound, nil},
			{"the owner is another, and the rule holds", "uwe", "new", false,
				update(ada, `{"owner_id": "`+h.ids["sam"]+`", "stage": "won"}`), notes, "", "uwe"},
			{"the owner is another, and it is shared", "uwe", "new", true,
				update(ada, `{"owner_id": "`+h.ids["sam"]+`"}`), notes, "", "uwe"},
		} {
			made := id(h.create(ada, "contact", fmt.Sprintf(`{"owner_id": %q, "stage": %q}`, h.ids[c.owner], c.stage)))
			if c.shared {
				if err := share(access.Edit)(made)(); err != nil {
					t.Fatal(err)
				}
			}
			errs := h.queued("contact", made, c.first(made), c.then(made))
			if errs[0] != nil || codeOf(errs[1]) != c.want || c.want == "" && errs[1] != nil {
				t.Errorf("%s: %v and %v, want nil and %q", c.name, errs[0], errs[1], c.want)
			}
			if got := h.get(ada, "contact", made)["note"]; got != c.note {
				t.Errorf("%s: the note is %v", c.name, got)
			}
		}
	})
}
