package db_test

import (
	"errors"
	"testing"

	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
)

// A caller that waits on Written is notified of the next write that succeeds, by any tenant
// and also in Days, and of none that failed.
func TestWrittenTellsOfTheNextWriteThatEndsWell(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ctx := t.Context()
		nothing := func(db.Tx) error { return nil }
		refused := errors.New("refused")
		told := func(c <-chan struct{}) bool {
			select {
			case <-c:
				return true
			default:
				return false
			}
		}
		for name, write := range map[string]func(err error) error{
			"a write":          func(err error) error { return d.For("t").Write(ctx, func(db.Tx) error { return err }) },
			"an ordered write": func(err error) error { return d.For("t").WriteOrdered(ctx, func(db.Tx) error { return err }) },
			"a write of none":  func(err error) error { return d.Unscoped("a test").Write(ctx, func(db.Tx) error { return err }) },
			"a write of a day": func(err error) error { return d.Days().Write(ctx, "t", aDay, func(db.Tx) error { return err }) },
		} {
			if err := d.Days().Write(ctx, "t", aDay, nothing); err != nil { // creates the day, if needed
				t.Fatal(err)
			}
			first, second := d.Written(), d.Written()
			if err := write(refused); !errors.Is(err, refused) || told(first) {
				t.Errorf("%s that fails: %v, told: %v", name, err, told(first))
			}
			if err := write(nil); err != nil || !told(first) || !told(second) {
				t.Errorf("%s: %v, told: %v, %v", name, err, told(first), told(second))
			}
			if told(d.Written()) {
				t.Errorf("%s: told of a write that was before", name)
			}
		}
	})
}
