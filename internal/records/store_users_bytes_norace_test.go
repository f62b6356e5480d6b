//go:build !race

package records_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/records"
	"gatehouse/internal/schema"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// TestUsersArePagedByBytesToo lists 30 users with 200 KB each.
func TestUsersArePagedByBytesToo(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := acme(t, d)
		h.configure(func(ctx context.Context, tx tenant.ConfigTx) error {
			return schema.PutUserFields(ctx, tx, entity("user", "notes text").Fields)
		})
		for n := range 30 {
			h.user(fmt.Sprint("user", n), user.User{Custom: []byte(`{"notes": "` + strings.Repeat("n", 200_000) + `"}`)})
		}
		cursor, seen, pages := "", map[string]int{}, 0
		for {
			p, err := h.as("olivia").List(t.Context(), "user", records.Query{Limit: 200, Cursor: cursor})
			if err != nil {
				t.Fatal(describe(err))
			}
			if len(p.Records) > pageBytes {
				t.Errorf("a page of %d users has %d bytes", p.Count, len(p.Records))
			}
			for _, u := range objects(t, p.Records) {
				seen[id(u)]++
			}
			if pages++; p.Next == "" {
				break
			}
			cursor = p.Next
		}
		if len(seen) != 35 || pages != 3 {
			t.Errorf("%d users on %d pages", len(seen), pages)
		}
	})
}
