package records_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"gatehouse/internal/access"
	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/records"
	"gatehouse/internal/schema"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// benchFields are the fields that make bench uses, and benchText has a record of them.
var benchFields = []string{
	"stage select", "score number", "city text", "first_name text", "last_name text", "email text", "phone text",
	"subscribed boolean", "notes text",
}

const benchText = `{"stage": "won", "score": 17, "city": "Antwerp", "first_name": "Ana", "last_name": "Albrecht", "email": "ana@example.com",
	"phone": "+49 30 1234567", "subscribed": true, "notes": "met at the spring fair, asked for the price list"}`

// BenchmarkCreate creates records of benchFields, with
// none, one and three of them indexed, from 16 goroutines at once.
func BenchmarkCreate(b *testing.B) {
	for _, indexed := range []int{0, 1, 3} {
		b.Run(fmt.Sprintf("indexed=%d", indexed), func(b *testing.B) {
			h := newHouse(b, dbtest.Open(b, db.SQLite), clock.System(), "bench")
			h.configure(func(ctx context.Context, tx tenant.ConfigTx) error {
				list := strings.Split(strings.Join(benchFields, " indexed|"), "|")
				copy(list[indexed:], benchFields[indexed:])
				return schema.PutEntity(ctx, tx, entity("contact", list...))
			})
			h.user("olivia", user.User{Owner: true})
			s, members := h.as("olivia"), body(b, benchText)
			b.SetParallelism(16)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := s.Create(context.Background(), "contact", members); err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
}

// BenchmarkCreateSearchable creates records with a name of 2 words and a note of 10 or
// 100 different ones, searchable or not.
func BenchmarkCreateSearchable(b *testing.B) {
	for _, words := range []int{10, 100} {
		for _, attribute := range []string{"", " searchable"} {
			b.Run(fmt.Sprintf("words=%d%s", words, strings.ReplaceAll(attribute, " ", ",")), func(b *testing.B) {
				h := newHouse(b, dbtest.Open(b, db.SQLite), clock.System(), "bench")
				h.configure(func(ctx context.Context, tx tenant.ConfigTx) error {
					return schema.PutEntity(ctx, tx, entity("contact", "name text"+attribute, "note text"+attribute))
				})
				h.user("olivia", user.User{Owner: true})
				s := h.as("olivia")
				note := ""
				for i := range words {
					note += fmt.Sprintf("word%d ", i)
				}
				members := body(b, fmt.Sprintf(`{"name": "Ada Lovelace", "note": %q}`, note))
				b.SetParallelism(16)
				b.ReportAllocs()
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						if _, err := s.Create(context.Background(), "contact", members); err != nil {
							b.Error(err)
						}
					}
				})
			})
		}
	}
}

// BenchmarkRead reads one record, and a list of 50, of a viewer who owns them.
func BenchmarkRead(b *testing.B) {
	for _, engine := range dbtest.Engines {
		h := newHouse(b, dbtest.Open(b, engine), clock.System(), "bench")
		h.configure(func(ctx context.Context, tx tenant.ConfigTx) error {
			return schema.PutEntity(ctx, tx, entity("contact", benchFields...))
		})
		h.user("sam", user.User{})
		h.set("sam", access.PermissionSet{Entities: map[string]access.EntityGrant{"contact": {Create: true, Read: true}}})
		s, members := h.as("sam"), body(b, benchText)
		var ids []string
		for range 1000 {
			made, err := s.Create(b.Context(), "contact", members)
			if err != nil {
				b.Fatal(err)
			}
			ids = append(ids, string(made[len(`{"id":"`):len(`{"id":"`)+36]))
		}
		b.Run(string(engine)+"/one", func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if _, err := s.Get(b.Context(), "contact", ids[i%len(ids)]); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(string(engine)+"/list", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.List(b.Context(), "contact", records.Query{Limit: 50}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
