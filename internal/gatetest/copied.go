package gatetest

import (
	"context"
	"errors"

	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
)

// Copied stops the world, copies its database to a new one of the other engine, as
// `gatehouse copy` does, and returns a world that serves that, with the same clock,
// mails and master key.
func (w *World) Copied() *World {
	w.T.Helper()
	engine := w.DB().Engine()
	for _, n := range w.Nodes {
		n.Stop()
	}
	from, to := w.config, dbtest.Config(w.T, map[db.Engine]db.Engine{db.SQLite: db.Postgres, db.Postgres: db.SQLite}[engine])
	next := &World{T: w.T, Clock: w.Clock, Mails: w.Mails, config: to, keyring: w.keyring}
	from.Name, to.Name, to.Target = "gatehouse copy", "gatehouse copy", true
	source, err := db.Open(context.Background(), from)
	if err != nil {
		w.T.Fatal(err)
	}
	target, err := db.Open(context.Background(), to)
	if err != nil {
		w.T.Fatal(errors.Join(err, source.Close()))
	}
	_, err = (&db.Copy{From: source, To: target}).Run(context.Background())
	if err := errors.Join(err, source.Close(), target.Close()); err != nil {
		w.T.Fatalf("copy: %v", err)
	}
	next.AddNode()
	return next
}
