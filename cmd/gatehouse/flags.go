package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/spf13/pflag"

	"gatehouse/internal/clock"
	"gatehouse/internal/secret"
	"gatehouse/internal/tenant"
)

const flagRules = `Flags may stand before or after other arguments. Each has a twin in the environment: GATEHOUSE_DATA for
--data, GATEHOUSE_MASTER_KEY_FILE for --master-key-file. Durations are like 90s, 15m or 720h.`

// flags are the flags of one command, with those that every command has.
type flags struct {
	*pflag.FlagSet
	env     *env
	command string
	// arguments names what the command takes besides flags, for Parse to demand.
	arguments []string

	data, database, masterKeyFile, cache string

	masterKey *secret.Keyring // once env.masterKey has read it
}

// flags begins the flags of the command of that name; add to them, then Parse.
func (e *env) flags(name string) *flags {
	f := &flags{FlagSet: pflag.NewFlagSet(name, pflag.ContinueOnError), env: e, command: name}
	f.SortFlags = false
	f.Usage = func() {}
	f.SetOutput(io.Discard)
	f.StringVar(&f.data, "data", "./gatehouse-data", "data folder `DIR`: SQLite files, audit/, master.key and outbox/")
	f.StringVar(&f.database, "database", "", "postgres:// `URL`, instead of SQLite in the data folder")
	f.StringVar(&f.masterKeyFile, "master-key-file", "",
		"`FILE` that holds the master key; without it GATEHOUSE_MASTER_KEY, or else master.key in the data folder")
	f.StringVar(&f.cache, "cache", "",
		"folder `DIR` for the compiled JavaScript engine; without it in the data folder, or with --database in the user's cache")
	return f
}

// tenant adds the flag that names the tenant.
func (f *flags) tenant() *tenant.ID {
	id := new(tenant.ID)
	f.StringVar((*string)(id), "tenant", "", "the `tenant`")
	return id
}

// commonFlags are those that every command has.
var commonFlags = []string{"data", "database", "master-key-file", "cache"}

// Parse reads the command's arguments, and the environment for the flags that
// are not among them. It demands the required flags, which may not be empty,
// and f.arguments. With --help it explains the command and returns
// pflag.ErrHelp.
func (f *flags) Parse(args []string, required ...string) error {
	switch err := f.FlagSet.Parse(args); {
	case err == pflag.ErrHelp: //nolint:errorlint // pflag returns it as it is
		if err := f.explain(); err != nil {
			return err
		}
		return pflag.ErrHelp
	case err != nil:
		return f.wrong("%s", err)
	}
	var failed error
	f.VisitAll(func(flag *pflag.Flag) {
		if err := f.fromEnv(flag); err != nil && failed == nil {
			failed = err
		}
	})
	if failed != nil {
		return failed
	}
	for _, name := range required {
		if f.Lookup(name).Value.String() == "" {
			return f.wrong("--%s is required", name)
		}
	}
	for i, name := range f.arguments {
		if f.Arg(i) == "" {
			return f.wrong("%s is required", name)
		}
	}
	if f.NArg() > len(f.arguments) {
		return f.wrong("unexpected argument %q", f.Arg(len(f.arguments)))
	}
	return nil
}

// wrong is a usageError that names the command.
func (f *flags) wrong(format string, args ...any) error {
	return usagef("%s: %s", f.command, fmt.Sprintf(format, args...))
}

// fromEnv sets a flag that was not given from its twin in the environment; a
// list is separated by commas there.
func (f *flags) fromEnv(flag *pflag.Flag) error {
	twin := "GATEHOUSE_" + strings.ToUpper(strings.ReplaceAll(flag.Name, "-", "_"))
	value := f.env.getenv(twin)
	if flag.Changed || value == "" {
		return nil
	}
	var err error
	if list, ok := flag.Value.(pflag.SliceValue); ok {
		flag.Changed = true
		err = list.Replace(strings.Split(value, ","))
	} else {
		err = f.Set(flag.Name, value)
	}
	if err != nil {
		return usagef("%s: %w", twin, err)
	}
	return nil
}

func (f *flags) explain() error {
	c, _ := find(f.command)
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	common := pflag.NewFlagSet("", pflag.ContinueOnError)
	own.SortFlags, common.SortFlags = false, false
	f.VisitAll(func(flag *pflag.Flag) {
		switch {
		case slices.Contains(commonFlags, flag.Name):
			common.AddFlag(flag)
		case flag.Name != "help":
			own.AddFlag(flag)
		}
	})
	text := "Usage: " + strings.TrimSpace("gatehouse "+c.name+" "+c.usage) + "\n\n" + c.summary + "\n"
	if own.HasFlags() {
		text += "\nFlags:\n" + own.FlagUsages()
	}
	text += "\nFlags of every command:\n" + common.FlagUsages() + "\n" + flagRules + "\n"
	_, err := io.WriteString(f.env.stdout, text)
	return err
}

// sinceVar adds the flag --since.
func (f *flags) sinceVar(at *time.Time) {
	f.Var(&instantFlag{at, clock.System()}, "since", "only since an `instant`: 90m or 720h ago, 2026-11-22 (UTC) or 2026-11-22T10:00:00Z")
}

// instantFlag is an instant, given as such or as how long ago it was.
type instantFlag struct {
	at  *time.Time
	clk clock.Clock
}

func (v *instantFlag) Set(text string) error {
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		*v.at = v.clk.Now().Add(-ago)
		return nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			*v.at = at.UTC()
			return nil
		}
	}
	return errors.New("expected a duration such as 90m or 720h, a day such as 2026-11-22, or an instant such as 2026-11-22T10:00:00Z")
}

func (v *instantFlag) Type() string { return "instant" }

func (v *instantFlag) String() string {
	if v.at == nil || v.at.IsZero() {
		return ""
	}
	return v.at.Format(time.RFC3339)
}

// list prints the rows of a list: with asJSON each value as one JSON object a
// line, else a table of the cells under the header.
type list struct {
	header []string
	values []any
	cells  [][]string
}

func (l *list) add(value any, cells ...string) {
	l.values = append(l.values, value)
	l.cells = append(l.cells, cells)
}

func (l *list) print(w io.Writer, asJSON bool) error {
	if asJSON {
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		for _, v := range l.values {
			if err := enc.Encode(v); err != nil {
				return err
			}
		}
		return nil
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range slices.Concat([][]string{l.header}, l.cells) {
		for i, cell := range row {
			row[i] = printable(cell)
		}
		if _, err := fmt.Fprintln(tw, strings.Join(row, "\t")); err != nil {
			return err
		}
	}
	return tw.Flush()
}

// printable keeps what users wrote from moving the cursor of a terminal.
func printable(cell string) string {
	if cell == "" {
		return "-"
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '\ufffd'
		}
		return r
	}, cell)
}

// instant is a stored time as lists show it; nil where there is none.
func instant(micros int64) *string {
	if micros == 0 {
		return nil
	}
	text := string(clock.AppendRFC3339Micro(nil, micros))
	return &text
}

// textOf is what a pointer points at, or nothing.
func textOf(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}
