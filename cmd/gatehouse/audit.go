package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"gatehouse/internal/audit"
	"gatehouse/internal/clock"
)

// auditCommand prints the audit log, newest first, while it reads it, so that a
// long log takes little memory.
func auditCommand(f *flags) action {
	f.forTenant()
	filter := audit.Filter{}
	f.StringVar(&filter.User, "user", "", "only requests of the user with this e-mail address, deleted or not")
	f.StringVar(&filter.Endpoint, "endpoint", "", "only '/data/*', '/me', '/custom/*', '/auth/*', '/admin/*' or one endpoint, such as '/custom/SLUG'")
	f.BoolVar(&filter.ErrorsOnly, "errors", false, "only answers with status 400 and above")
	f.StringVar(&filter.RequestID, "request-id", "", "only the request with this `id`, from its answer's X-Request-Id")
	f.sinceVar(&filter.Since)
	f.IntVar(&filter.Limit, "limit", 0, "at most so many entries (0: all)")
	f.listing(", with request and response")
	return func(ctx context.Context) error {
		filter.RequestID = strings.ToLower(filter.RequestID)
		if err := filter.Check(); err != nil {
			return err
		}
		return f.onTenant(ctx, func(t *tenantDB) error { return f.printAudit(ctx, t, filter) })
	}
}

func (f *flags) printAudit(ctx context.Context, t *tenantDB, filter audit.Filter) error {
	out := bufio.NewWriterSize(f.stdout, 64<<10)
	log := audit.Log{DB: t.DB, Tenant: t.config.Tenant.ID, Skipped: func(day string, err error) {
		f.say("Of the audit log of %s, what cannot be read is left out: %v", day, err)
	}}
	var err error
	if f.asJSON {
		err = log.Query(ctx, filter, auditLines(out))
	} else {
		table := &auditTable{out: out}
		if err = log.Query(ctx, filter, table.row); err == nil {
			err = table.head()
		}
	}
	return errors.Join(err, out.Flush())
}

// auditLines returns a function that prints entries as JSON.
func auditLines(out *bufio.Writer) func(*audit.Entry) error {
	var line []byte
	return func(entry *audit.Entry) error {
		line = append(entry.AppendJSON(line[:0]), '\n')
		_, err := out.Write(line)
		return err
	}
}

// auditTable prints entries as a table. Its columns have fixed widths, because the
// rows that follow are not known yet; a longer cell shifts the rest of its line.
type auditTable struct {
	out   *bufio.Writer
	begun bool
}

const auditColumns = "%-27s  %-28s  %-6s  %6s  %9s  %-15s  %-7s %s\n"

// head prints the header, once.
func (t *auditTable) head() error {
	if t.begun {
		return nil
	}
	t.begun = true
	_, err := fmt.Fprintf(t.out, auditColumns, "TIME", "USER", "AUTH", "STATUS", "MS", "IP", "METHOD", "PATH")
	return err
}

func (t *auditTable) row(e *audit.Entry) error {
	if err := t.head(); err != nil {
		return err
	}
	at := clock.AppendRFC3339Micro(nil, clock.Micros(e.At))
	ms := strconv.FormatFloat(float64(e.Duration)/float64(time.Millisecond), 'f', 1, 64)
	_, err := fmt.Fprintf(t.out, auditColumns, at, printable(e.User), printable(e.Auth), strconv.Itoa(e.Status), ms,
		printable(e.IP), printable(e.Method), printable(e.Path))
	return err
}
