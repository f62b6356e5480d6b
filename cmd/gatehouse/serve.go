package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"runtime/debug"
	"sync"
	"time"

	"gatehouse/internal/clock"
	"gatehouse/internal/component"
	"gatehouse/internal/db"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/mail"
	"gatehouse/internal/secret"
	"gatehouse/internal/server"
)

// serveFlags are the flags of the commands that serve.
type serveFlags struct {
	*flags
	listen, opsListen, proxies, smtp string
	drainDelay                       time.Duration
}

// The drain delay: what it is for is decision 0039.
const (
	defaultDrainDelay = 2 * time.Second
	maxDrainDelay     = 10 * time.Minute
)

func newServeFlags(f *flags) *serveFlags {
	s := &serveFlags{flags: f}
	f.StringVar(&s.listen, "listen", "127.0.0.1:8080", "address of the public API")
	f.StringVar(&s.opsListen, "ops-listen", "", "address of /healthz, /readyz and /metrics; none when empty")
	f.StringVar(&s.proxies, "trusted-proxies", "", "comma-separated CIDRs or addresses whose X-Forwarded-For is trusted")
	f.DurationVar(&s.drainDelay, "drain-delay", 0,
		"how long to serve on after a signal, while /readyz is 503 and balancers turn away (default 2s with --ops-listen, else 0s)")
	f.StringVar(&s.smtp, "smtp", "", "server that takes mail, smtp://user:pass@host:587; without it each mail is a file in DIR/outbox")
	return s
}

// mail returns the sender of mails that the flags choose.
func (f *serveFlags) mail() (mail.Sender, error) {
	if f.smtp == "" {
		return mail.Files(filepath.Join(f.data, "outbox")), nil
	}
	sender, err := mail.SMTP(f.smtp)
	if err != nil {
		return nil, usagef("--smtp: %s", err)
	}
	return sender, nil
}

// delay returns the drain delay: without --ops-listen nobody can see that the server
// is not ready, so there is nobody to wait for.
func (f *serveFlags) delay() (time.Duration, error) {
	switch {
	case f.Lookup("drain-delay").Changed && (f.drainDelay < 0 || f.drainDelay > maxDrainDelay):
		return 0, usagef("--drain-delay: expected a duration from 0s to 10m")
	case f.Lookup("drain-delay").Changed:
		return f.drainDelay, nil
	case f.opsListen != "":
		return defaultDrainDelay, nil
	default:
		return 0, nil
	}
}

// serveCommand serves every tenant until a signal ends it.
func serveCommand(f *flags) action {
	s := newServeFlags(f)
	return func(ctx context.Context) error {
		return s.serve(ctx, hooks{})
	}
}

// gcPercent lets the heap grow to five times the live data between collections:
// the live data is small, and each collection slows requests. GOGC in the
// environment overrides it.
const gcPercent = 400

// hooks are what a command does besides serving. Each may be nil.
type hooks struct {
	// before is called with the open database and listener.
	before func(*db.DB, net.Listener) error
	// beside runs while the server serves, until its context ends, which it does when
	// the server begins to drain.
	beside func(context.Context, *running)
}

// running is a server with what it works on.
type running struct {
	*server.Server
	db      *db.DB
	keyring *secret.Keyring
	engine  *component.Engine
	address string // of the public API
}

// serve opens the database and the listeners, and serves until ctx ends.
func (f *serveFlags) serve(ctx context.Context, with hooks) error {
	if f.getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	proxies, err := httpapi.ParseTrustedProxies(f.proxies)
	if err != nil {
		return usagef("--trusted-proxies: %s", err)
	}
	sender, err := f.mail()
	if err != nil {
		return err
	}
	delay, err := f.delay()
	if err != nil {
		return err
	}
	c, err := f.config()
	if err != nil {
		return err
	}
	c.Serve = true
	return f.with(ctx, c, func(d *db.DB) (err error) {
		keyring, err := f.keyring(ctx, d)
		if err != nil {
			return err
		}
		public, ops, err := listen(f)
		if err != nil {
			return err
		}
		if with.before != nil {
			if err := with.before(d, public); err != nil {
				return err
			}
		}
		engine, err := f.engine(ctx)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, engine.Close(context.WithoutCancel(ctx))) }()
		s := server.New(server.Options{
			DB: d, Keyring: keyring, Clock: clock.System(), Log: f.stdout, Proxies: proxies, Engine: engine, Mail: sender, DrainDelay: delay,
		})
		s.Emit("server.listening", map[string]any{"addr": public.Addr().String(), "ops_addr": addr(ops), "engine": string(d.Engine())})
		var beside sync.WaitGroup
		defer beside.Wait() // before the engine and the database are closed
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		if with.beside != nil {
			beside.Go(func() { with.beside(ctx, &running{s, d, keyring, engine, public.Addr().String()}) })
		}
		return s.Serve(ctx, public, ops)
	})
}

// listen binds the addresses before the server reports that it is ready. ops is
// nil without --ops-listen.
func listen(f *serveFlags) (public, ops net.Listener, err error) {
	public, err = net.Listen("tcp", f.listen)
	if err != nil {
		return nil, nil, fmt.Errorf("--listen: %w", err)
	}
	if f.opsListen == "" {
		return public, nil, nil
	}
	ops, err = net.Listen("tcp", f.opsListen)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("--ops-listen: %w", err), public.Close())
	}
	return public, ops, nil
}

// addr returns the address of a listener, nil if there is none.
func addr(l net.Listener) any {
	if l == nil {
		return nil
	}
	return l.Addr().String()
}
