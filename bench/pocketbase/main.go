// Command pocketbase is PocketBase as a contestant: the released module,
// unchanged and with its own defaults, with one collection that has the fields
// of the benchmark's entity type.
//
// At the first start it creates a user and the collection "contact" (only the
// owner of a record may list, view, create or update it; the index serves the
// list in its order) and fills it; the collection "order" is written by hooks
// only. At every start it prints one JSON line with the user's id, e-mail address
// and password and a token, then serves. With -hooks it has the JavaScript plugin, set up as the released
// program has it, and runs the hooks in that folder.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"

	"github.com/pocketbase/pocketbase"
	"github.com/pocketbase/pocketbase/apis"
	"github.com/pocketbase/pocketbase/core"
	"github.com/pocketbase/pocketbase/plugins/jsvm"
	"github.com/pocketbase/pocketbase/tools/types"

	"gatehouse/bench/contact"
)

func main() {
	data := flag.String("data", "pb_data", "data directory")
	listen := flag.String("listen", "127.0.0.1:8090", "address to serve on")
	records := flag.Int("records", 10_000, "records to create at the first start")
	queried := flag.Bool("queried", false, "make the collection of the queries, in SQL, for two users")
	hooks := flag.String("hooks", "", "folder with JavaScript hooks")
	flag.Parse()
	if err := run(*data, *listen, *hooks, *records, *queried); err != nil {
		log.Fatal(err)
	}
}

// The user who owns all records.
const (
	ownerEmail    = "owner@example.com"
	ownerPassword = "the password of the owner"
)

// batchItems is how many requests a batch may have, as many as one of Gatehouse's. PocketBase's batches are off by default.
const batchItems = 200

// hooksPool is the default of the released program's flag --hooksPool.
const hooksPool = 15

func run(data, listen, hooks string, records int, queried bool) error {
	app := pocketbase.NewWithConfig(pocketbase.Config{DefaultDataDir: data, HideStartBanner: true})
	if hooks != "" {
		if err := jsvm.Register(app, jsvm.Config{HooksDir: hooks, HooksPoolSize: hooksPool}); err != nil {
			return err
		}
	}
	if err := app.Bootstrap(); err != nil {
		return err
	}
	if err := app.RunAllMigrations(); err != nil {
		return err
	}
	user, err := app.FindAuthRecordByEmail("users", ownerEmail)
	if err != nil {
		fill := seed
		if queried {
			fill = seedQueried
		}
		if user, err = fill(app, records); err != nil {
			return err
		}
	}
	app.Settings().Batch.Enabled, app.Settings().Batch.MaxRequests = true, batchItems
	token, err := user.NewAuthToken()
	if err != nil {
		return err
	}
	said := map[string]string{"user": user.Id, "token": token, "email": ownerEmail, "password": ownerPassword}
	if queried {
		few, err := app.FindAuthRecordByEmail("users", fewEmail)
		if err != nil {
			return err
		}
		if said["few"], err = few.NewAuthToken(); err != nil {
			return err
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(said); err != nil {
		return err
	}
	return apis.Serve(app, apis.ServeConfig{HttpAddr: listen})
}

// seed makes the user, the collections and the contacts in one transaction.
func seed(app core.App, records int) (*core.Record, error) {
	var user *core.Record
	err := app.RunInTransaction(func(tx core.App) error {
		users, err := tx.FindCollectionByNameOrId("users")
		if err != nil {
			return err
		}
		if user, err = newUser(tx, users, ownerEmail); err != nil {
			return err
		}
		contacts := collection(users)
		if err := tx.Save(contacts); err != nil {
			return err
		}
		if err := tx.Save(orders()); err != nil {
			return err
		}
		for n := range records {
			record := core.NewRecord(contacts)
			record.Load(contact.Fields(n))
			record.Set("owner", user.Id)
			if err := tx.Save(record); err != nil {
				return fmt.Errorf("record %d: %w", n, err)
			}
		}
		return nil
	})
	return user, err
}

func newUser(tx core.App, users *core.Collection, email string) (*core.Record, error) {
	user := core.NewRecord(users)
	user.SetEmail(email)
	user.SetVerified(true)
	user.SetPassword(ownerPassword)
	return user, tx.Save(user)
}

func collection(users *core.Collection) *core.Collection {
	c := core.NewBaseCollection("contact")
	owner := types.Pointer("owner = @request.auth.id")
	c.ListRule, c.ViewRule, c.UpdateRule = owner, owner, owner
	c.CreateRule = types.Pointer("@request.auth.id != '' && @request.body.owner = @request.auth.id")
	c.Fields.Add(
		&core.RelationField{Name: "owner", CollectionId: users.Id, MaxSelect: 1, Required: true},
		&core.TextField{Name: "first_name", Required: true},
		&core.TextField{Name: "last_name"},
		&core.TextField{Name: "email"},
		&core.TextField{Name: "phone"},
		&core.TextField{Name: "city"},
		&core.SelectField{Name: "stage", Values: contact.Stages, MaxSelect: 1},
		&core.NumberField{Name: "score"},
		&core.BoolField{Name: "subscribed"},
		&core.TextField{Name: "notes"},
		&core.AutodateField{Name: "created", OnCreate: true},
		&core.AutodateField{Name: "updated", OnCreate: true, OnUpdate: true},
	)
	c.AddIndex("contact_owner_created", false, "owner, created DESC, id DESC", "")
	return c
}

// orders has no rules: only the program itself, hooks included, may touch it.
func orders() *core.Collection {
	c := core.NewBaseCollection("order")
	c.Fields.Add(
		&core.TextField{Name: "customer", Required: true},
		&core.TextField{Name: "street"},
		&core.TextField{Name: "zip"},
		&core.TextField{Name: "city"},
		&core.TextField{Name: "currency"},
		&core.TextField{Name: "note"},
		&core.NumberField{Name: "items"},
		&core.NumberField{Name: "net"},
		&core.NumberField{Name: "tax"},
		&core.NumberField{Name: "gross"},
		&core.JSONField{Name: "taxes"},
		&core.JSONField{Name: "lines"},
		&core.AutodateField{Name: "created", OnCreate: true},
		&core.AutodateField{Name: "updated", OnCreate: true, OnUpdate: true},
	)
	return c
}
