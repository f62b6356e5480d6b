package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"runtime/debug"

	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/mail"
	"gatehouse/internal/server"
)

// serveFlags are the flags of the commands that serve.
type serveFlags struct {
	*flags
	listen, opsListen, proxies, smtp string
}

func (e *env) serveFlags(name string) *serveFlags {
	f := &serveFlags{flags: e.flags(name)}
	f.StringVar(&f.listen, "listen", "127.0.0.1:8080", "address of the public API")
	f.StringVar(&f.opsListen, "ops-listen", "", "address of /healthz, /readyz and /metrics; none when empty")
	f.StringVar(&f.proxies, "trusted-proxies", "", "comma-separated CIDRs or addresses whose X-Forwarded-For is believed")
	f.StringVar(&f.smtp, "smtp", "", "server that takes mail, smtp://user:pass@host:587; without it each mail is a file in DIR/outbox")
	return f
}

// mail is where mails go.
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

// serveCommand serves every tenant until a signal ends it.
func serveCommand(ctx context.Context, e *env, args []string) error {
	f := e.serveFlags("serve")
	if err := f.Parse(args); err != nil {
		return err
	}
	return e.serve(ctx, f, nil)
}

// gcPercent lets the heap grow to five times what is live before it is
// collected: what is live is small, and collecting costs every request.
// GOGC in the environment has the last word.
const gcPercent = 400

// serve opens the database, calls prepare with it when it is given, and serves.
func (e *env) serve(ctx context.Context, f *serveFlags, prepare func(context.Context, *db.DB, net.Listener) error) (err error) {
	if e.getenv("GOGC") == "" {
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
	c, err := f.config()
	if err != nil {
		return err
	}
	c.Serve = true
	d, err := e.openConfig(ctx, f.flags, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	keyring, err := e.keyring(ctx, f.flags, d)
	if err != nil {
		return err
	}
	public, ops, err := listen(f)
	if err != nil {
		return err
	}
	if prepare != nil {
		if err := prepare(ctx, d, public); err != nil {
			return err
		}
	}
	engine, err := e.engine(ctx, f.flags)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close(context.WithoutCancel(ctx))) }()
	s := server.New(server.Options{
		DB: d, Keyring: keyring, Clock: clock.System(), Log: e.stdout, Proxies: proxies, Engine: engine, Mail: sender,
	})
	s.Emit("server.listening", map[string]any{"addr": public.Addr().String(), "ops_addr": addr(ops), "engine": string(d.Engine())})
	return s.Serve(ctx, public, ops)
}

// listen takes the addresses before anything is promised to anybody.
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

func addr(l net.Listener) any {
	if l == nil {
		return nil
	}
	return l.Addr().String()
}
