package main

import (
	"context"
	"crypto/rand"

	"gatehouse/internal/db"
)

// databaseDistribute makes a database of Citus a distributed one.
func databaseDistribute(f *flags) action {
	return func(ctx context.Context) error {
		if f.database == "" {
			return f.wrong("--database is required: the address of the coordinator of Citus")
		}
		c, err := f.config()
		if err != nil {
			return err
		}
		c.Name = "gatehouse distribute " + rand.Text()[:8] // told from others that are connected
		return f.with(ctx, c, func(d *db.DB) error {
			err := d.Distribute(ctx, func(table string, byTenant bool) {
				if byTenant {
					f.say("%s: distributed by tenant", table)
				} else {
					f.say("%s: the same on every server", table)
				}
			})
			if err == nil {
				f.say("The database is distributed.")
			}
			return err
		})
	}
}
