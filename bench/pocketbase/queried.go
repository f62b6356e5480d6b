package main

import (
	"fmt"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
	"github.com/pocketbase/pocketbase/tools/types"

	"gatehouse/bench/contact"
)

// The second user of the queries owns few records, at even distances among all.
const (
	fewEmail = "few@example.com"
	few      = 20
)

// seedQueried makes two users and the collection of the queries in one transaction. The records
// go into its table by SQL: a million saves would take many minutes.
func seedQueried(app core.App, records int) (*core.Record, error) {
	var all *core.Record
	err := app.RunInTransaction(func(tx core.App) error {
		users, err := tx.FindCollectionByNameOrId("users")
		if err != nil {
			return err
		}
		if all, err = newUser(tx, users, ownerEmail); err != nil {
			return err
		}
		other, err := newUser(tx, users, fewEmail)
		if err != nil {
			return err
		}
		contacts := collection(users)
		contacts.Fields.Add(&core.TextField{Name: "region"}, &core.TextField{Name: "code"})
		for _, field := range []string{"region", "city", "score", "code"} {
			contacts.AddIndex("contact_owner_"+field, false, "owner, "+field+" DESC, created DESC, id DESC", "")
		}
		if err := tx.Save(contacts); err != nil {
			return err
		}
		return insert(tx, records, all.Id, other.Id)
	})
	if err != nil {
		return nil, err
	}
	_, err = app.DB().NewQuery("ANALYZE").Execute()
	return all, err
}

// columns are those of a contact that its generator gives.
var columns = []string{"first_name", "last_name", "email", "phone", "city", "stage", "score", "subscribed", "notes", "region", "code"}

// insert adds the records, a millisecond apart, as PocketBase would have stored them.
func insert(tx core.App, records int, owner, other string) error {
	names, places := "id, owner, created, updated", "{:id}, {:owner}, {:created}, {:created}"
	for _, column := range columns {
		names, places = names+", "+column, places+", {:"+column+"}"
	}
	query := tx.DB().NewQuery(fmt.Sprintf("INSERT INTO contact (%s) VALUES (%s)", names, places)).Prepare()
	defer func() { _ = query.Close() }()
	first := time.Now().Add(-time.Duration(records) * time.Millisecond)
	distance := max(1, records/few)
	for n := range records {
		created := first.Add(time.Duration(n) * time.Millisecond).UTC()
		values := dbx.Params{"id": core.GenerateDefaultRandomId(), "owner": owner, "created": created.Format(types.DefaultDateLayout)}
		if n%distance == 1 {
			values["owner"] = other
		}
		fields := contact.Queried(n)
		for _, column := range columns {
			values[column] = fields[column]
		}
		if _, err := query.Bind(values).Execute(); err != nil {
			return fmt.Errorf("record %d: %w", n, err)
		}
	}
	return nil
}
