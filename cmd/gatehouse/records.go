package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"gatehouse/internal/access"
	"gatehouse/internal/clock"
	"gatehouse/internal/fault"
	"gatehouse/internal/records"
	"gatehouse/internal/schema"
	"gatehouse/internal/transfer"
)

// transferFlags are what an export and an import have in common.
type transferFlags struct {
	*flags
	entity, format, user *string
	spreadsheet          *bool
}

func (f *flags) forTransfer(spreadsheet string) transferFlags {
	f.forTenant()
	return transferFlags{
		f, f.required("entity", "`entity` type of the records"),
		f.String("format", "", "`format`: csv or ndjson, one JSON object a line (default by the file's name, or csv)"),
		f.String("user", "", "e-mail `address` of the user who does it, under their permissions (not given: the system)"),
		f.Bool("spreadsheet", false, spreadsheet),
	}
}

// formatOf returns the format that the flags ask for; file is the name of the file. It
// returns a usageError for one that there is not, and for --spreadsheet without CSV.
func (with transferFlags) formatOf(file string) (transfer.Format, error) {
	format, ok := transfer.ParseFormat(*with.format, file)
	switch {
	case !ok:
		return "", with.wrong("--format %s: expected csv or ndjson", *with.format)
	case *with.spreadsheet && format != transfer.CSV:
		return "", with.wrong("--spreadsheet goes with csv")
	}
	return format, nil
}

// moving is an open tenant, its records and who moves them.
type moving struct {
	*tenantDB
	store  *records.Store
	viewer access.Viewer
}

// onRecords calls do with the records of the tenant, for the user of --user, or for the
// system, in the name of owner where there is one.
func (f *flags) onRecords(ctx context.Context, email, owner string, do func(*moving) error) error {
	return f.onTenant(ctx, func(t *tenantDB) error {
		m := &moving{tenantDB: t, viewer: access.System(t.config, "operator commands records import and export")}
		if who := cmp.Or(email, owner); who != "" {
			u, err := t.user(ctx, who)
			if err != nil {
				return err
			}
			if m.viewer, err = t.directory.Viewer(ctx, t.config, u.ID, email == ""); err != nil {
				return err
			}
			if email == "" {
				m.viewer = access.SystemAs(m.viewer, "operator command records import --owned-by")
			}
		}
		key := make([]byte, 32) // of cursors that nobody else sees
		if _, err := rand.Read(key); err != nil {
			return err
		}
		m.store = records.New(t.DB, t.directory, clock.System(), key)
		return do(m)
	})
}

// recordsExport prints the records of an entity type.
func recordsExport(f *flags) action {
	with := f.forTransfer("begin texts that a spreadsheet may take for a formula with an apostrophe, which import --spreadsheet removes")
	fields := f.StringSlice("fields", nil, "only id and these `fields`, with commas between them")
	filters := f.StringArray("filter", nil, "only records with this value of a field, as `FIELD=VALUE` or FIELD[OPERATOR]=VALUE; may be repeated")
	sort := f.StringSlice("sort", nil, "one or two `fields`, each with - before it to begin with the greatest (default: the newest record first)")
	return func(ctx context.Context) error {
		format, err := with.formatOf("")
		if err != nil {
			return err
		}
		order, ok := records.ParseSort(*sort)
		if !ok {
			return f.wrong("--sort: expected one or two fields with a comma between them")
		}
		q := records.Query{Fields: *fields, Sort: order}
		for _, text := range *filters {
			filter, ok := parseFilter(text)
			if !ok {
				return f.wrong("--filter %s: expected FIELD=VALUE or FIELD[OPERATOR]=VALUE", text)
			}
			q.Filter = append(q.Filter, filter)
		}
		return f.onRecords(ctx, *with.user, "", func(m *moving) error {
			ex := transfer.Export{
				Records: m.store, Directory: m.directory, Viewer: m.viewer, Entity: *with.entity, Format: format, Query: q, Spreadsheet: *with.spreadsheet,
			}
			pace := newPace()
			ex.Progress = func(n int64) {
				if pace.due() {
					f.say("%s records, %s a second", thousands(n), thousands(pace.rate(n)))
				}
			}
			n, err := ex.Run(ctx, f.stdout)
			if err != nil {
				return err
			}
			f.say("%s records.", thousands(n))
			return nil
		})
	}
}

// parseFilter reads a filter as the query of a list has it (contract P7).
func parseFilter(text string) (filter records.Filter, ok bool) {
	name, value, ok := strings.Cut(text, "=")
	filter = records.Filter{Field: name, Value: value}
	if field, op, has := strings.Cut(name, "["); has {
		if op, has = strings.CutSuffix(op, "]"); !has {
			return filter, false
		}
		filter.Field, filter.Op = field, schema.Operator(op)
	}
	if filter.Op.TakesList() {
		var err error
		filter.List, err = csv.NewReader(strings.NewReader(value)).Read()
		filter.Value, ok = "", ok && err == nil
	}
	return filter, ok && filter.Field != ""
}

// maxNamed is how many records that failed an import names.
const maxNamed = 1000

// recordsImport creates and changes records from a file.
func recordsImport(f *flags) action {
	with := f.forTransfer("remove the apostrophes of export --spreadsheet")
	owner := f.String("owned-by", "", "e-mail `address` of the user who owns new records that name no owner, where there is no --user")
	by := f.String("by", "", "unique `field`, or id, by which records are found that are changed (not given: all are new)")
	ignore := f.StringSlice("ignore", nil, "`columns` that are left out, with commas between them")
	batch := f.Int("batch", records.MaxBatch, fmt.Sprintf("how `many` records have effect together, at most %d", records.MaxBatch))
	dry := f.Bool("dry-run", false, "do everything and name what fails, but keep nothing")
	resume := f.Bool("resume", false, "continue an import of this input that was interrupted")
	restart := f.Bool("restart", false, "begin an import of this input anew that was interrupted")
	f.arguments = []string{"FILE"}
	return func(ctx context.Context) error {
		format, err := with.formatOf(f.Arg(0))
		if err != nil {
			return err
		}
		switch {
		case *batch < 1 || *batch > records.MaxBatch:
			return f.wrong("--batch: expected 1 to %d", records.MaxBatch)
		case *with.user != "" && *owner != "":
			return f.wrong("give one of --user and --owned-by")
		case *resume && (*restart || *dry):
			return f.wrong("--resume goes with neither --restart nor --dry-run")
		}
		in, err := f.openInput(ctx, f.Arg(0))
		if err != nil {
			return err
		}
		defer in.Close() // it was only read
		return f.onRecords(ctx, *with.user, *owner, func(m *moving) error {
			im := &transfer.Import{
				DB: m.DB, Records: m.store, Directory: m.directory, Clock: clock.System(), Viewer: m.viewer, Entity: *with.entity, Format: format,
				By: *by, Ignore: *ignore, Batch: *batch, Spreadsheet: *with.spreadsheet, DryRun: *dry, Resume: *resume, Restart: *restart,
			}
			return f.runImport(ctx, im, in)
		})
	}
}

// openInput opens a file; - is standard input. A read ends with ctx: the file may be a
// pipe, too.
func (e *env) openInput(ctx context.Context, name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(e.stdin), nil
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{&interruptible{ctx: ctx, in: file}, file}, nil
}

// runImport imports the input and reports on standard error. It returns an error where
// records failed.
func (f *flags) runImport(ctx context.Context, im *transfer.Import, in io.Reader) error {
	named, pace := 0, newPace()
	im.Note = func(text string) { f.say("%s", printable(text)) }
	im.Failed = func(failure transfer.Failure) {
		if named++; named <= maxNamed {
			f.say("line %d: %s", failure.Line, printable(failure.Reason))
		}
	}
	im.Progress = func(r transfer.Result) {
		if pace.due() {
			f.say("%s lines: %s; %s records a second", thousands(r.Line), countsOf(r.Counts), thousands(pace.rate(r.All()-r.Before)))
		}
	}
	result, err := im.Run(ctx, in)
	if named > maxNamed {
		f.say("… and %s lines more that failed", thousands(int64(named-maxNamed)))
	}
	if err != nil {
		return interrupted(ctx, im, result, err)
	}
	if f.say("%s.", countsOf(result.Counts)); im.DryRun {
		f.say("dry run: nothing was kept")
	}
	if result.Failed > 0 {
		return fmt.Errorf("%s of %s records failed", thousands(result.Failed), thousands(result.All()))
	}
	return nil
}

// interrupted says how an import that came some way goes on.
func interrupted(ctx context.Context, im *transfer.Import, result transfer.Result, err error) error {
	if ctx.Err() != nil {
		err = errors.New("interrupted")
	}
	if result.Line == 0 || im.DryRun || errors.Is(err, transfer.ErrTaken) {
		return err
	}
	var refused *fault.Error
	if errors.As(err, &refused) {
		err = errors.New(oneLine(refused))
	}
	return fmt.Errorf("%w; what stands up to line %d has had effect: the same command with --resume continues behind it", err, result.Line)
}

func countsOf(c transfer.Counts) string {
	return fmt.Sprintf("%s created, %s updated, %s unchanged, %s failed", thousands(c.Created), thousands(c.Updated), thousands(c.Unchanged), thousands(c.Failed))
}

// pace says when progress is reported, every few seconds, and how fast it is.
type pace struct{ began, last time.Time }

// every is how often progress is reported.
const every = 5 * time.Second

func newPace() *pace { now := time.Now(); return &pace{now, now} }

func (p *pace) due() bool {
	if time.Since(p.last) < every {
		return false
	}
	p.last = time.Now()
	return true
}

// rate returns how many of n there were in a second.
func (p *pace) rate(n int64) int64 { return int64(float64(n) / time.Since(p.began).Seconds()) }
