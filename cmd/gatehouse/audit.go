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

// auditCommand prints the audit log, newest first, as it is read: however long
// it is, little of it is in memory.
func auditCommand(ctx context.Context, e *env, args []string) (err error) {
	f := e.flags("audit")
	tenantID := f.tenant()
	filter := audit.Filter{}
	f.StringVar(&filter.User, "user", "", "only requests of the user with this e-mail address, deleted or not")
	f.StringVar(&filter.Endpoint, "endpoint", "", "only '/data/*', '/me', '/custom/*', '/auth/*' or one endpoint, such as '/custom/SLUG'")
	f.BoolVar(&filter.ErrorsOnly, "errors", false, "only answers with status 400 and above")
	f.StringVar(&filter.RequestID, "request-id", "", "only the request with this `id`, as its answer's X-Request-Id has it")
	f.sinceVar(&filter.Since)
	f.IntVar(&filter.Limit, "limit", 0, "at most so many entries (0: all)")
	asJSON := f.Bool("json", false, "print one JSON object a line, with request and response")
	if err := f.Parse(args, "tenant"); err != nil {
		return err
	}
	filter.RequestID = strings.ToLower(filter.RequestID)
	if err := filter.Check(); err != nil {
		return err
	}
	d, err := e.open(ctx, f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	if _, _, err := e.tenant(ctx, d, *tenantID); err != nil {
		return err
	}
	out := bufio.NewWriterSize(e.stdout, 64<<10)
	log := audit.Log{DB: d, Tenant: *tenantID, Skipped: func(day string, err error) {
		e.say("Of the audit log of %s, what cannot be read is left out: %v", day, err)
	}}
	if *asJSON {
		err = log.Query(ctx, filter, auditLines(out))
	} else {
		table := &auditTable{out: out}
		if err = log.Query(ctx, filter, table.row); err == nil {
			err = table.head()
		}
	}
	return errors.Join(err, out.Flush())
}

// auditLines prints entries as JSON.
func auditLines(out *bufio.Writer) func(*audit.Entry) error {
	var line []byte
	return func(entry *audit.Entry) error {
		line = append(entry.AppendJSON(line[:0]), '\n')
		_, err := out.Write(line)
		return err
	}
}

// auditTable prints entries as a table. Its columns have fixed widths, because
// the rows to come are not known; a longer cell pushes its line to the right.
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
