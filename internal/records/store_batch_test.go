package records_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/internal/access"
	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/fault"
	"gatehouse/internal/records"
	"gatehouse/internal/schema"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

func creating(t testing.TB, text string) records.Item {
	return records.Item{Op: records.OpCreate, Fields: body(t, text)}
}

func updating(t testing.TB, id, text string) records.Item {
	return records.Item{Op: records.OpUpdate, ID: id, Fields: body(t, text)}
}

func deleting(id string) records.Item { return records.Item{Op: records.OpDelete, ID: id} }

func upserting(t testing.TB, by, text string) records.Item {
	return records.Item{Op: records.OpUpsert, By: by, Fields: body(t, text)}
}

// tried returns the error that an item of a batch would have, and leaves nothing.
func tried(t testing.TB, s *records.Session, entity string, item records.Item) (refused error) {
	t.Helper()
	_, err := s.Batch(t.Context(), records.Batch{Entity: entity, Items: []records.Item{item}, Also: func(_ db.Tx, done []records.Done) error {
		refused = nil
		if done[0].Err != nil {
			refused = done[0].Err
		}
		return errUndone
	}})
	if !errors.Is(err, errUndone) {
		t.Fatalf("%s %s: %v", item.Op, entity, describe(err))
	}
	return refused
}

// single makes the single call of an item.
func single(s *records.Session, entity string, item records.Item) (err error) {
	switch ctx := context.Background(); item.Op {
	case records.OpCreate:
		_, err = s.Create(ctx, entity, item.Fields)
	case records.OpUpdate:
		_, err = s.Update(ctx, entity, item.ID, item.Fields)
	default:
		err = s.Delete(ctx, entity, item.ID)
	}
	return err
}

// TestAnItemIsTheSingleCall: whoever makes it, an item of a batch has the answer of the
// single call: rights, hidden records, hidden and foreign parents, shares, fields.
func TestAnItemIsTheSingleCall(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := dealer(t, d)
		open := access.FieldGrant{Read: true, Edit: true}
		h.configure(func(ctx context.Context, tx tenant.ConfigTx) error {
			return errors.Join(
				access.PutPermissionSet(ctx, tx, &access.PermissionSet{Name: "reads", Entities: map[string]access.EntityGrant{"contact": {Read: true}, "account": {Read: true}}}),
				access.PutPermissionSet(ctx, tx, &access.PermissionSet{Name: "writes", Entities: map[string]access.EntityGrant{"contact": {Create: true}}}),
				access.PutPermissionSet(ctx, tx, &access.PermissionSet{Name: "some", Entities: map[string]access.EntityGrant{"contact": {
					Create: true, Read: true, Update: true,
					Fields: map[string]access.FieldGrant{"name": open, "email": {Read: true}, "score": {}},
				}}}),
			)
		})
		h.user("rita", user.User{Sets: []string{"reads"}})
		h.user("wim", user.User{Sets: []string{"writes"}})
		h.user("finn", user.User{Sets: []string{"some"}})
		h.user("nina", user.User{})
		sam := h.as("sam")
		level := map[string]access.Level{"none": "", "read": access.ReadOnly, "edit": access.Edit}
		outcomes := map[string]int{}
		n := 0
		for _, name := range []string{"olivia", "ada", "sam", "sue", "eva", "rita", "wim", "finn", "nina"} {
			who := h.as(name)
			for shared, access1 := range level {
				account := id(h.create(sam, "account", `{}`))
				order := h.under(sam, "order", "account", account, "")
				n++
				contact := id(h.create(sam, "contact", fmt.Sprintf(`{"email": "c%d@x", "account": %q}`, n, account)))
				if access1 != "" {
					for _, at := range [][2]string{{"account", account}, {"contact", contact}} {
						if err := sam.Share(t.Context(), at[0], at[1], records.Share{Principal: access.UserPrincipal(user.ID(h.ids[name])), Access: access1}); err != nil {
							t.Fatal(describe(err))
						}
					}
				}
				taken := fmt.Sprintf(`{"email": "c%d@x"}`, n)
				for _, x := range []struct {
					entity string
					item   records.Item
				}{
					{"contact", creating(t, `{}`)},
					{"contact", creating(t, taken)},
					{"contact", creating(t, `{"name": "n", "score": "x", "nothing": 1, "account": "none"}`)},
					{"contact", creating(t, `{"id": "x", "score": 1}`)},
					{"contact", creating(t, `{"account": "`+account+`"}`)},
					{"contact", creating(t, `{"owner_id": "`+h.ids["sue"]+`"}`)},
					{"contact", updating(t, contact, `{}`)},
					{"contact", updating(t, contact, `{"name": "y"}`)},
					{"contact", updating(t, contact, `{"score": 1, "email": "new@x"}`)},
					{"contact", updating(t, contact, `{"account": null, "created_at": "x"}`)},
					{"contact", updating(t, contact, `{"owner_id": "`+h.ids["eva"]+`"}`)},
					{"contact", updating(t, "none", `{"name": "y"}`)},
					{"order", creating(t, `{"account": "`+account+`"}`)},
					{"order", creating(t, `{}`)},
					{"order", updating(t, order, `{"name": "y"}`)},
					{"order", updating(t, order, `{"account": "none"}`)},
					{"line", creating(t, `{"order": "`+order+`", "sku": "s"}`)},
					{"user", creating(t, `{}`)},
					{"user", updating(t, h.ids["sam"], `{"name": "Sam"}`)},
					{"user", updating(t, "none", `{"name": "Sam"}`)},
					{"user", deleting(h.ids["sam"])},
					{"nothing", creating(t, `{}`)},
					{"nothing", deleting("x")},
					{"contact", deleting("none")},
					{"contact", deleting(contact)},
					{"order", deleting(order)},
					{"account", deleting(account)},
				} {
					got, want := tried(t, who, x.entity, x.item), single(who, x.entity, x.item)
					if describe(got) != describe(want) {
						t.Errorf("%s, shared %s: %s %s %.100s: a batch says %v, the single call %v", name, shared, x.item.Op, x.entity, x.item.Fields, describe(got), describe(want))
					}
					outcomes[string(fault.CodeOf(want))]++
					if want == nil && x.item.Op == records.OpCreate && x.entity == "line" { // its value is free for the next
						for _, r := range h.list(h.as("olivia"), "line") {
							h.delete(h.as("olivia"), "line", id(r))
						}
					}
					if want == nil && strings.Contains(fmt.Sprint(x.item.Fields), "new@x") {
						h.update(h.as("olivia"), "contact", contact, fmt.Sprintf(`{"email": "c%d@x"}`, n))
					}
				}
			}
		}
		for _, code := range []string{"", "VALIDATION", "FORBIDDEN", "NOT_FOUND", "CONFLICT"} {
			if outcomes[code] < 5 {
				t.Errorf("%d calls had %q: the cases do not cover it", outcomes[code], code)
			}
		}
	})
}

// TestABatchAsksNothingThatItsCallerMayNotWrite: the time of looking up a value tells
// whether a record has it, so it is looked up for those alone who may write the field.
func TestABatchAsksNothingThatItsCallerMayNotWrite(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := acme(t, d)
		every := access.EntityGrant{Create: true, Read: true, Update: true}
		with := func(f access.FieldGrant) access.EntityGrant {
			g := every
			g.Fields = map[string]access.FieldGrant{"name": {Read: true, Edit: true}, "email": f}
			return g
		}
		grants := map[string]access.EntityGrant{"every": every, "reads": {Read: true}, "keeps": with(access.FieldGrant{Read: true}), "hides": with(access.FieldGrant{})}
		h.configure(func(ctx context.Context, tx tenant.ConfigTx) (err error) {
			for name, g := range grants {
				err = errors.Join(err, access.PutPermissionSet(ctx, tx, &access.PermissionSet{Name: name, Entities: map[string]access.EntityGrant{"contact": g}}))
			}
			return err
		})
		for name := range grants {
			h.user(name, user.User{Sets: []string{name}})
		}
		h.user("nobody", user.User{})
		text := []string{`{"email": "a@x"}`, `{"email": "b@x"}`}
		creates := []records.Item{creating(t, text[0]), creating(t, text[1])}
		updates := []records.Item{updating(t, "none", text[0]), updating(t, "none", text[1])}
		upserts := []records.Item{upserting(t, "email", text[0]), upserting(t, "email", text[1])}
		for _, x := range []struct {
			who                       string
			creates, updates, upserts int
		}{{"every", 1, 1, 1}, {"keeps", 0, 0, 1}, {"hides", 0, 0, 0}, {"reads", 0, 0, 0}, {"nobody", 0, 0, 0}} {
			for items, want := range map[*[]records.Item]int{&creates: x.creates, &updates: x.updates, &upserts: x.upserts} {
				got, err := records.LookUps(t.Context(), h.as(x.who), records.Batch{Entity: "contact", Items: *items})
				if err != nil || got != want {
					t.Errorf("%s, %s: %d look-ups, %v; expected %d", x.who, (*items)[0].Op, got, err, want)
				}
			}
		}
	})
}

func TestAnUpsertUpdatesWhatItsCallerSees(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := acme(t, d)
		h.configure(func(ctx context.Context, tx tenant.ConfigTx) error {
			put := func(name string, g access.EntityGrant) error {
				return access.PutPermissionSet(ctx, tx, &access.PermissionSet{Name: name, Entities: map[string]access.EntityGrant{"contact": g}})
			}
			hidden := map[string]access.FieldGrant{"email": {}}
			return errors.Join(put("creates", access.EntityGrant{Create: true, Read: true}), put("updates", access.EntityGrant{Read: true, Update: true}),
				put("blind", access.EntityGrant{Create: true, Update: true}), put("hides", access.EntityGrant{Create: true, Read: true, Update: true, Fields: hidden}),
				put("keeps", access.EntityGrant{Create: true, Read: true, Update: true, Fields: map[string]access.FieldGrant{"name": {Read: true, Edit: true}, "email": {Read: true}}}))
		})
		for _, set := range []string{"creates", "updates", "blind", "hides", "keeps"} {
			h.user(set, user.User{Sets: []string{set}})
		}
		seen := id(h.create(h.as("sam"), "contact", `{"email": "seen@x"}`))
		for _, name := range []string{"creates", "updates", "blind", "hides", "keeps"} {
			if err := h.as("sam").Share(t.Context(), "contact", seen, records.Share{Principal: access.UserPrincipal(user.ID(h.ids[name])), Access: access.Edit}); err != nil {
				t.Fatal(describe(err))
			}
		}
		h.create(h.as("ada"), "contact", `{"email": "hidden@x"}`)
		for _, x := range []struct {
			who, by, fields string
			code            fault.Code // "" for none
			named           string     // in details.fields
		}{
			{"sam", "email", `{"email": "seen@x", "name": "n"}`, "", ""},
			{"sam", "email", `{"email": "hidden@x", "name": "n"}`, fault.Conflict, "email"}, // as a create
			{"sam", "email", `{"email": "new@x"}`, "", ""},
			{"creates", "email", `{"email": "seen@x"}`, fault.Forbidden, ""},
			{"creates", "email", `{"email": "hidden@x"}`, fault.Conflict, "email"},
			{"creates", "email", `{"email": "new1@x"}`, "", ""},
			{"updates", "email", `{"email": "seen@x"}`, "", ""},
			{"updates", "email", `{"email": "hidden@x"}`, fault.Forbidden, ""}, // as one of a value that nobody has
			{"updates", "email", `{"email": "new2@x"}`, fault.Forbidden, ""},
			{"blind", "email", `{"email": "seen@x"}`, fault.Forbidden, ""},
			{"hides", "email", `{"email": "seen@x"}`, fault.Validation, "by"},
			{"hides", "nothing", `{"email": "seen@x"}`, fault.Validation, "by"},
			{"sam", "score", `{"score": 1}`, fault.Validation, "by"},
			{"sam", "email", `{"name": "n"}`, fault.Validation, "email"},
			{"sam", "email", `{"email": null}`, fault.Validation, "email"},
			{"sam", "email", `{"email": 7}`, fault.Validation, "email"},
			{"sam", "email", `{"email": "seen@x", "score": "x"}`, fault.Validation, "score"},
			{"keeps", "email", `{"email": "seen@x", "name": "kept"}`, "", ""}, // finds by what it may not edit
			{"keeps", "email", `{"email": "new3@x"}`, fault.Forbidden, "email"},
		} {
			err := tried(t, h.as(x.who), "contact", upserting(t, x.by, x.fields))
			if fault.CodeOf(err) != x.code || (err == nil) != (x.code == "") {
				t.Errorf("%s by %s %s: %v, want %q", x.who, x.by, x.fields, describe(err), x.code)
			} else if x.named != "" {
				want(t, err, x.code, x.named)
			}
		}
		err := tried(t, h.as("sam"), "user", upserting(t, "email", `{"email": "sam@acme.example"}`))
		want(t, err, fault.Forbidden)
		absent, hidden := tried(t, h.as("updates"), "contact", upserting(t, "email", `{"email": "no@x"}`)), tried(t, h.as("updates"), "contact", upserting(t, "email", `{"email": "hidden@x"}`))
		if describe(absent) != describe(hidden) {
			t.Errorf("who may not create learns what is hidden: %v, %v", describe(absent), describe(hidden))
		}
	})
}

// counts returns how many rows the tables of records have.
func (h *house) counts() string {
	var counts []string
	for _, table := range []string{"records", "field_values", "shares", "rule_matches", "leftovers"} {
		counts = append(counts, fmt.Sprint(table, " ", h.tableRows(table, "1 = 1")))
	}
	return strings.Join(counts, ", ")
}

func TestABatchThatFailsLeavesNothing(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := dealer(t, d)
		sam := h.as("sam")
		account := id(h.create(sam, "account", `{"name": "a"}`))
		shared := id(h.create(sam, "contact", `{"email": "s@x", "account": "`+account+`"}`))
		if err := sam.Share(t.Context(), "contact", shared, records.Share{Principal: access.RolePrincipal("support"), Access: access.ReadOnly}); err != nil {
			t.Fatal(describe(err))
		}
		items := func(last records.Item) []records.Item {
			return []records.Item{creating(t, `{"email": "a@x", "score": 7, "account": "`+account+`"}`), updating(t, shared, `{"score": 9, "stage": "won"}`), deleting(shared),
				upserting(t, "email", `{"email": "b@x", "stage": "new"}`), upserting(t, "email", `{"email": "b@x", "stage": "lost"}`), last}
		}
		before, was := h.counts(), fmt.Sprint(h.get(sam, "contact", shared))
		unchanged := func(how string) {
			t.Helper()
			if after, is := h.counts(), fmt.Sprint(h.get(sam, "contact", shared)); after != before || is != was {
				t.Errorf("%s: %s %s, before %s %s", how, after, is, before, was)
			}
		}
		_, err := sam.Batch(t.Context(), records.Batch{Entity: "contact", Atomic: true, Items: items(creating(t, `{"email": "a@x"}`))})
		var failed *records.BatchError
		if !errors.As(err, &failed) || failed.Done[5].Err == nil || failed.Done[0].Err != nil {
			t.Fatalf("%v", err)
		}
		want(t, failed.Done[5].Err, fault.Conflict, "email")
		unchanged("a failing last item")
		// Cancelled with everything written, and after it the transaction must not be committed.
		ctx, cancel := context.WithCancel(t.Context())
		_, err = sam.Batch(ctx, records.Batch{Entity: "contact", Atomic: true, Items: items(creating(t, `{}`)), Also: func(db.Tx, []records.Done) error {
			cancel()
			return ctx.Err()
		}})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
		unchanged("cancelled")
		ended, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
		defer cancel()
		if _, err := sam.Batch(ended, records.Batch{Entity: "contact", Atomic: true, Items: items(creating(t, `{}`))}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the caller's time ended: %v", err)
		}
		unchanged("no time")
		if done, err := sam.Batch(t.Context(), records.Batch{Entity: "contact", Atomic: true, Items: items(creating(t, `{}`))}); err != nil || len(done) != 6 {
			t.Fatal(describe(err))
		}
		if after := h.counts(); after == before {
			t.Errorf("a batch that succeeds left %s", after)
		}
	})
}

// Upserts of one value at once make one record, and none of them fails. A look-up that
// is followed by a create or an update makes CONFLICTs here.
func TestConcurrentUpsertsMakeOneRecord(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := acme(t, d)
		s := h.as("sam")
		for round := range 6 {
			value := fmt.Sprintf("r%d@x", round)
			var wg sync.WaitGroup
			var created atomic.Int64
			for i := range 8 {
				wg.Go(func() {
					done, err := s.Batch(context.Background(), records.Batch{Entity: "contact", Atomic: true, Items: []records.Item{
						creating(t, `{"stage": "lost"}`), upserting(t, "email", fmt.Sprintf(`{"email": %q, "score": %d}`, value, i)),
					}})
					if err != nil {
						t.Errorf("%s, %d: %v", value, i, describe(err))
						return
					}
					if done[1].Created {
						created.Add(1)
					}
				})
			}
			wg.Wait()
			if list := h.list(s, "contact", records.Filter{Field: "email", Value: value}); len(list) != 1 || created.Load() != 1 {
				t.Errorf("%s: %d records, %d created", value, len(list), created.Load())
			}
		}
		if n := len(h.list(s, "contact", records.Filter{Field: "stage", Value: "lost"})); n != 48 {
			t.Errorf("%d other records", n)
		}
	})
}

// A batch on a record that single calls change all the time is done: the last tries
// hold the record before they read it.
func TestABatchOnABusyRecord(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := acme(t, d)
		s := h.as("sam")
		busy := id(h.create(s, "contact", `{"email": "busy@x", "score": 0}`))
		stop := make(chan struct{})
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for i := 0; ; i++ {
					select {
					case <-stop:
						return
					default:
					}
					if _, err := s.Update(context.Background(), "contact", busy, body(t, fmt.Sprintf(`{"score": %d}`, i))); err != nil {
						t.Error(describe(err))
						return
					}
				}
			})
		}
		var items []records.Item
		for i := range 100 {
			items = append(items, creating(t, fmt.Sprintf(`{"email": "e%d@x"}`, i)))
		}
		for i := range 5 {
			items = append(items, upserting(t, "email", fmt.Sprintf(`{"email": "busy@x", "note": "n%d"}`, i)), updating(t, busy, fmt.Sprintf(`{"name": "n%d"}`, i)))
			if _, err := s.Batch(t.Context(), records.Batch{Entity: "contact", Atomic: true, Items: items}); err != nil {
				t.Errorf("batch %d: %v", i, describe(err))
			}
			for j := range 100 {
				items[j] = creating(t, fmt.Sprintf(`{"email": "e%d-%d@x"}`, i, j))
			}
		}
		close(stop)
		wg.Wait()
		if got := h.get(s, "contact", busy); got["note"] != "n4" || got["name"] != "n4" {
			t.Errorf("%v", got)
		}
	})
}

func TestABatchHasBounds(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := acme(t, d)
		s := h.as("sam")
		large := `"` + strings.Repeat("x", 900<<10) + `"`
		var items []records.Item
		for range 10 {
			items = append(items, creating(t, `{"note": `+large+`}`))
		}
		done, err := s.Batch(t.Context(), records.Batch{Entity: "contact", Items: items})
		if err != nil {
			t.Fatal(describe(err))
		}
		for i, one := range done {
			if i < 9 && one.Err != nil || i == 9 && (one.Err == nil || one.Err.Code != fault.Validation || !strings.Contains(one.Err.Message, "8 MiB")) {
				t.Errorf("item %d: %v", i, one.Err)
			}
		}
		// Records that are only read weigh in the answer.
		items = items[:0]
		for range 10 {
			items = append(items, updating(t, done[0].ID, `{}`))
		}
		if done, err = s.Batch(t.Context(), records.Batch{Entity: "contact", Items: items}); err != nil || done[9].Err == nil || done[9].Err.Code != fault.Validation {
			t.Errorf("%v %v", done, err)
		}
	})
}

// A batch follows a change of configuration that happens meanwhile.
// TestABatchThatLosesARaceAtItsEnd: where its time is over when a batch is to begin anew, it
// took too long, like any other. (The error of looking up the viewer again was INTERNAL.)
func TestABatchThatLosesARaceAtItsEnd(t *testing.T) {
	defer records.BatchesTake(time.Second)()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		b := records.Batch{Entity: "contact", Items: []records.Item{creating(t, `{"name": "Ada"}`)}, Also: func(db.Tx, []records.Done) error {
			time.Sleep(1200 * time.Millisecond)
			return records.ErrLost
		}}
		if _, err := acme(t, d).as("sam").Batch(t.Context(), b); fault.CodeOf(err) != fault.Overloaded {
			t.Errorf("got %v", err)
		}
	})
}

// TestABatchNamesABoundedNumberOfFields: once items have named more than a thousand, the
// next ones say that they do not. (A refused batch of 0.9 MiB took 60 MiB.)
func TestABatchNamesABoundedNumberOfFields(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := acme(t, d)
		var unknown strings.Builder
		for i := range 600 {
			fmt.Fprintf(&unknown, `,"u%d":1`, i)
		}
		b := records.Batch{Entity: "contact"}
		for range 20 {
			b.Items = append(b.Items, creating(t, "{"+unknown.String()[1:]+"}"))
		}
		b.Items = append(b.Items, creating(t, `{"name": "fine"}`), deleting("none"))
		done, err := h.as("sam").Batch(t.Context(), b)
		if err != nil {
			t.Fatal(err)
		}
		for i, d := range done[:20] {
			fields, _ := d.Err.Details["fields"].(map[string]string)
			named := 600
			if i > 1 {
				named = 0
			}
			if d.Err.Code != fault.Validation || len(fields) != named || (named == 0) != strings.Contains(d.Err.Message, "left out") {
				t.Errorf("item %d: %d fields, %s", i, len(fields), d.Err.Message)
			}
		}
		if done[20].Err != nil || done[21].Err == nil || done[21].Err.Code != fault.NotFound {
			t.Errorf("%v, %v", done[20].Err, done[21].Err)
		}
	})
}

func TestABatchWithoutRights(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := acme(t, d)
		s := h.as("sam")
		h.configure(func(ctx context.Context, tx tenant.ConfigTx) error {
			return errors.Join(access.PutPermissionSet(ctx, tx, &access.PermissionSet{Name: "work"}), schema.PutEntity(ctx, tx, entity("extra", "name text")))
		})
		_, err := s.Batch(t.Context(), records.Batch{Entity: "contact", Atomic: true, Items: []records.Item{creating(t, `{}`)}})
		var failed *records.BatchError
		if !errors.As(err, &failed) {
			t.Fatal(describe(err))
		}
		want(t, failed.Done[0].Err, fault.Forbidden)
		if n := h.tableRows("records", "1 = 1"); n != 0 {
			t.Errorf("%d records", n)
		}
	})
}

// The deletions of a batch, and of a run, share the bound on the references that are
// cleared with them: what is beyond it is cleared right after the transaction.
func TestTheDeletionsOfABatchShareABound(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := acme(t, d)
		s := h.as("sam")
		var accounts []records.Item
		for range 2 {
			account := id(h.create(s, "account", `{}`))
			accounts = append(accounts, deleting(account))
			for range 3 {
				var items []records.Item
				for range records.MaxBatch {
					items = append(items, creating(t, `{"account": "`+account+`"}`))
				}
				if _, err := s.Batch(t.Context(), records.Batch{Entity: "contact", Atomic: true, Items: items}); err != nil {
					t.Fatal(describe(err))
				}
			}
		}
		var within [2]int64
		_, err := s.Batch(t.Context(), records.Batch{Entity: "account", Atomic: true, Items: accounts, Also: func(tx db.Tx, _ []records.Done) error {
			for i, sql := range []string{`SELECT count(*) FROM field_values WHERE tenant_id = $1 AND entity = 'contact' AND field = 'account' AND reach = ''`,
				`SELECT count(*) FROM leftovers WHERE tenant_id = $1`} {
				if err := tx.Query(t.Context(), sql, func(r db.Row) error { within[i] = r.Int(0); return nil }); err != nil {
					return err
				}
			}
			return nil
		}})
		if err != nil || within != [2]int64{600, 1} {
			t.Errorf("%v: %d references and %d leftovers in the transaction, want 600 and 1", describe(err), within[0], within[1])
		}
		if n := h.keys("contact", "account") + h.tableRows("leftovers", "1 = 1"); n != 0 {
			t.Errorf("%d are left", n)
		}
	})
}

// An upsert by a reference to a record that the batch has deleted finds no record, as
// after a single deletion, which clears the reference.
func TestAnUpsertByAReferenceThatIsGone(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := acme(t, d)
		h.configure(func(ctx context.Context, tx tenant.ConfigTx) error {
			return schema.PutEntity(ctx, tx, entity("chain", "name text", "twin reference:chain unique"))
		})
		s := h.as("ada")
		one := id(h.create(s, "chain", `{}`))
		two := id(h.create(s, "chain", `{"twin": "`+one+`"}`))
		done, err := s.Batch(t.Context(), records.Batch{Entity: "chain", Items: []records.Item{
			updating(t, two, `{"name": "two"}`), deleting(one), upserting(t, "twin", `{"twin": "`+one+`", "name": "three"}`),
		}})
		if err != nil {
			t.Fatal(describe(err))
		}
		want(t, done[2].Err, fault.Validation, "twin")
		if got := h.get(s, "chain", two); got["twin"] != nil || got["name"] != "two" {
			t.Errorf("left: %v", got)
		}
	})
}

// A body with system members alone changes updated_at and the version in a batch, as it
// does in a single call.
func TestABatchTouchesARecord(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := acme(t, d)
		s := h.as("sam")
		made := h.create(s, "contact", `{}`)
		for _, name := range []string{"id", "created_at", "updated_at"} {
			was := h.get(s, "contact", id(made))
			text := fmt.Sprintf(`{%q: %q}`, name, was[name])
			done, err := s.Batch(t.Context(), records.Batch{Entity: "contact", Items: []records.Item{updating(t, id(made), text)}})
			if err != nil || done[0].Err != nil {
				t.Fatal(describe(err), done[0].Err)
			}
			is := h.get(s, "contact", id(made))
			if is["updated_at"] == was["updated_at"] {
				t.Errorf("%s: updated_at did not change", text)
			}
			if answer := object(t, done[0].Record); answer["updated_at"] != is["updated_at"] {
				t.Errorf("%s: answered %v, stored %v", text, answer, is)
			}
		}
		if n := h.tableRows("records", "version = 4"); n != 1 {
			t.Errorf("%d records were changed three times", n)
		}
		ada := h.as("ada")
		was := h.get(ada, "user", h.ids["sam"])
		done, err := ada.Batch(t.Context(), records.Batch{Entity: "user", Items: []records.Item{updating(t, h.ids["sam"], fmt.Sprintf(`{"updated_at": %q}`, was["updated_at"]))}})
		if err != nil || done[0].Err != nil {
			t.Fatal(describe(err), done[0].Err)
		}
		is := h.get(ada, "user", h.ids["sam"])
		if answer := object(t, done[0].Record); is["updated_at"] == was["updated_at"] || answer["updated_at"] != is["updated_at"] {
			t.Errorf("a user: answered %v, stored %v, before %v", answer, is, was)
		}
	})
}

// A batch that prepares in its transaction waits for no record that its caller does not
// see, so that its time tells nothing about one (PostgreSQL holds single records).
func TestABatchWaitsForNoHiddenRecord(t *testing.T) {
	h := acme(t, dbtest.Open(t, db.Postgres))
	sam := h.as("sam")
	h.configure(func(ctx context.Context, tx tenant.ConfigTx) error {
		return access.PutPermissionSet(ctx, tx, &access.PermissionSet{Name: "touch", Entities: map[string]access.EntityGrant{"contact": {Create: true, Read: true, Update: true}}})
	})
	h.user("nils", user.User{Sets: []string{"touch"}})
	nils := h.as("nils")
	hidden := id(h.create(sam, "contact", `{"email": "hidden@x"}`))
	own := id(h.create(nils, "contact", `{}`))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tries := 0
	err := h.d.For(h.tenant).Write(ctx, func(tx db.Tx) error {
		err := tx.Query(ctx, `SELECT 1 FROM records WHERE tenant_id = $1 AND record_id = $2`+tx.Dialect().ForUpdate, func(db.Row) error { return nil }, hidden)
		if err != nil {
			return err
		}
		done, err := nils.Batch(ctx, records.Batch{Entity: "contact", Items: []records.Item{
			updating(t, own, `{"name": "own"}`), updating(t, hidden, `{"name": "x"}`), upserting(t, "email", `{"email": "hidden@x"}`),
		}, Also: func(db.Tx, []records.Done) error {
			if tries++; tries <= 2 { // of which the third is prepared in its transaction
				return records.ErrLost
			}
			return nil
		}})
		if err != nil {
			return err
		}
		want(t, done[1].Err, fault.NotFound)
		want(t, done[2].Err, fault.Conflict, "email")
		return nil
	})
	if err != nil || tries != 3 {
		t.Errorf("%v after %d tries", describe(err), tries)
	}
}

// A batch that keeps what is equal changes no record that has the values already, and
// refuses what it would refuse else.
func TestABatchKeepsWhatIsEqual(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := dealer(t, d)
		sam := h.as("sam")
		rec := h.create(sam, "contact", `{"name": "Ada", "email": "a@x", "score": 1}`)
		for _, c := range []struct {
			item      records.Item
			unchanged bool
			code      fault.Code
		}{
			{updating(t, id(rec), `{"name": "Ada", "score": 1.0}`), true, ""},
			{updating(t, id(rec), fmt.Sprintf(`{"owner_id": %q}`, h.ids["sam"])), true, ""},
			{upserting(t, "email", `{"email": "a@x", "name": "Ada"}`), true, ""},
			{upserting(t, "email", `{"email": "a@x", "name": "Ada", "score": "1"}`), false, fault.Validation},
			{updating(t, id(rec), fmt.Sprintf(`{"owner_id": %q}`, h.ids["sue"])), false, fault.Forbidden},
			{upserting(t, "email", `{"email": "a@x", "name": "Ada L"}`), false, ""},
			{updating(t, id(rec), `{"score": null}`), false, ""},
			{creating(t, `{"name": "Ada"}`), false, ""},
		} {
			before := h.get(sam, "contact", id(rec))
			done, err := sam.Batch(t.Context(), records.Batch{Entity: "contact", Items: []records.Item{c.item}, KeepEqual: true})
			if err != nil {
				t.Fatal(describe(err))
			}
			var code fault.Code
			if done[0].Err != nil {
				code = done[0].Err.Code
			}
			kept := fmt.Sprint(h.get(sam, "contact", id(rec))) == fmt.Sprint(before)
			if done[0].Unchanged != c.unchanged || code != c.code || (c.unchanged || code != "") && !kept || kept && !c.unchanged && code == "" && !done[0].Created {
				t.Errorf("%s %v: unchanged %v, %s; the record was kept: %v", c.item.Op, c.item.Fields, done[0].Unchanged, code, kept)
			}
		}
	})
}
