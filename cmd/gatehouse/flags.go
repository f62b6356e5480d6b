package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"gatehouse/internal/clock"
	"gatehouse/internal/secret"
	"gatehouse/internal/tenant"
)

const flagRules = `Flags may stand before or after other arguments. Each can also be set in the environment: GATEHOUSE_DATA for
--data, GATEHOUSE_MASTER_KEY_FILE for --master-key-file. Durations are like 90s, 15m or 720h.`

// flags are the flags of one command: its own, and those that every command has.
type flags struct {
	*pflag.FlagSet
	*env
	command   command
	mustHave  []string // flags that must be given and not be empty
	arguments []string // names of the arguments that must follow the flags

	tenant tenant.ID // set by forTenant
	asJSON bool      // set by listing

	data, database, masterKeyFile, cache string

	ring *secret.Keyring // set by masterKey
}

// flags returns the flags that every command has; c.declare adds its own.
func (e *env) flags(c command) *flags {
	f := &flags{FlagSet: pflag.NewFlagSet(c.name, pflag.ContinueOnError), env: e, command: c}
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

// commonFlags names the flags that every command has.
var commonFlags = []string{"data", "database", "master-key-file", "cache"}

// required adds a flag that must be given and not be empty.
func (f *flags) required(name, usage string) *string {
	f.mustHave = append(f.mustHave, name)
	return f.String(name, "", usage)
}

// forTenant adds the flag --tenant, which must be given.
func (f *flags) forTenant() {
	f.mustHave = append(f.mustHave, "tenant")
	f.StringVar((*string)(&f.tenant), "tenant", "", "the `tenant`")
}

// listing adds the flag --json; more describes what JSON shows in addition to the table.
func (f *flags) listing(more string) {
	f.BoolVar(&f.asJSON, "json", false, "print one JSON object a line"+more)
}

// parse reads the command's arguments, and the environment for the flags that
// are not among them. With --help it explains the command and returns
// pflag.ErrHelp. It returns a usageError for a command line that it does not
// understand, and for one that lacks a required flag or argument.
func (f *flags) parse(args []string) error {
	switch err := f.FlagSet.Parse(args); {
	case err == pflag.ErrHelp: //nolint:errorlint // pflag does not wrap it
		if err := f.explain(); err != nil {
			return err
		}
		return pflag.ErrHelp
	case err != nil:
		return f.wrong("%s", inWords(err))
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
	for _, name := range f.mustHave {
		flag := f.Lookup(name)
		if flag.Value.String() != "" {
			continue
		}
		if value, _ := pflag.UnquoteUsage(flag); flag.Shorthand != "" {
			return f.wrong("expected -%s %s", flag.Shorthand, value)
		}
		return f.wrong("--%s is required", name)
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

// wrong returns a usageError that names the command.
func (f *flags) wrong(format string, args ...any) error {
	return usagef("%s: %s", f.command.name, fmt.Sprintf(format, args...))
}

// fromEnv sets a flag that was not given from its environment variable, in which
// commas separate the values of a list.
func (f *flags) fromEnv(flag *pflag.Flag) error {
	variable := "GATEHOUSE_" + strings.ToUpper(strings.ReplaceAll(flag.Name, "-", "_"))
	value := f.getenv(variable)
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
		return usagef("%s: %s", variable, inWords(err))
	}
	return nil
}

// inWords returns an error of a flag's value, with what is expected for a type whose own
// error is a programmer's.
func inWords(err error) string {
	expected := map[string]string{"int": "a whole number", "duration": "a duration such as 90s, 15m or 720h", "bool": "true or false"}
	var wrong *pflag.InvalidValueError
	if !errors.As(err, &wrong) || expected[wrong.GetFlag().Value.Type()] == "" {
		return err.Error()
	}
	return fmt.Sprintf("--%s %s: expected %s", wrong.GetFlag().Name, wrong.GetValue(), expected[wrong.GetFlag().Value.Type()])
}

// explain prints the command's usage, summary and flags.
func (f *flags) explain() error {
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
	text := "Usage: " + strings.TrimSpace("gatehouse "+f.command.name+" "+f.command.usage) + "\n\n" + f.command.summary + "\n"
	if own.HasFlags() {
		text += "\nFlags:\n" + own.FlagUsages()
	}
	text += "\nFlags of every command:\n" + common.FlagUsages() + "\n" + flagRules + "\n"
	_, err := io.WriteString(f.stdout, text)
	return err
}

// sinceVar adds the flag --since.
func (f *flags) sinceVar(at *time.Time) {
	f.Var(&instantFlag{at, clock.System()}, "since", "only since an `instant`: 90m or 720h ago, 2026-11-22 (UTC) or 2026-11-22T10:00:00Z")
}

// instantFlag is the value of a flag that takes an instant, or a duration back
// from now.
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
