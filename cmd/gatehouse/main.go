// Command gatehouse is the whole product: the server, and the commands with which
// an operator provisions and maintains it (contract S1–S4).
//
// Machine-readable output goes to standard output, and messages for the operator go
// to standard error. A failure is reported there on one line, with exit status 2 if
// the command line was not understood and 1 if the command failed.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/pflag"

	"gatehouse/internal/fault"
)

// version is set by the Makefile, with -ldflags "-X main.version=…", to the
// output of git describe.
var version = ""

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(run(ctx, os.Args[1:], os.Getenv, os.Stdin, os.Stdout, os.Stderr))
}

// env holds the parts of the process's environment that a command uses.
type env struct {
	getenv         func(string) string
	stdin          io.Reader
	stdout, stderr io.Writer
}

// say writes a message for the operator, one line on standard error.
func (e *env) say(format string, args ...any) { fmt.Fprintf(e.stderr, format+"\n", args...) }

// command is one command of the program.
type command struct {
	name    string // one word or two
	usage   string // what follows the name
	summary string
	// declare adds the command's flags to f and returns what to run once they are
	// parsed. It is nil for help and version, which take no flags.
	declare func(f *flags) action
}

// action runs a command after its flags have been parsed.
type action func(ctx context.Context) error

// commands returns every command of the program.
func commands() []command {
	return []command{
		{"serve", "[--listen ADDR] [--ops-listen ADDR] [--drain-delay D]", "serve every tenant", serveCommand},
		{"demo", "[--listen ADDR]", "make a demo tenant if there is none, and serve it", demoCommand},
		{"apply", "-f FILE [--dry-run] [--prune]", "provision one tenant from a manifest", applyCommand},
		{"dev", "-f FILE [--prune] [--types FILE] [--listen ADDR]", "serve every tenant, and apply a manifest each time that a file of it changes", devCommand},
		{"export", "--tenant T", "print the manifest of a tenant", exportCommand},
		{"openapi", "--tenant T [--as EMAIL]", "print the OpenAPI document of a tenant's API", openapiCommand},
		{"types", "--tenant T", "print TypeScript declarations for a tenant's components", typesCommand},
		{"tenant list", "[--json]", "list the tenants", tenantList},
		{"tenant delete", "--tenant T --confirm T", "delete a tenant with everything that it has", tenantDelete},
		{"tenant rotate-jwt-key", "--tenant T", "sign access tokens with a new key", tenantRotateKey},
		{"user list", "--tenant T [--email E] [--json]", "list staff and external users", userList},
		{
			"user create", "--tenant T --email E --name N [--type external] [--owner] [--role R] [--permission-set P]… [--password-stdin]",
			"create a user", userCreate,
		},
		{"user password", "--tenant T --email E --password-stdin", "set a user's password, which ends their sessions", userPassword},
		{"user reset-factor", "--tenant T --email E", "remove a user's second factor and recovery codes", userResetFactor},
		{"user deactivate", "--tenant T --email E", "deactivate a user", userDeactivate},
		{"user reactivate", "--tenant T --email E", "reactivate a user", userReactivate},
		{"user resend", "--tenant T --email E", "send the verification mail again", userResend},
		{
			"key create", "--tenant T --user EMAIL --name N [--rate-limit N] [--cors-origin O]… [--ip-allow CIDR]… [--expires 720h]",
			"create an API key and print its token, once", keyCreate,
		},
		{"key list", "--tenant T [--json]", "list the API keys", keyList},
		{"key delete", "--tenant T --id ID", "delete an API key", keyDelete},
		{"endpoint token", "--tenant T --slug S", "make a (new) webhook token and print it, once", endpointToken},
		{"run exec", "--tenant T (--component | --automation) NAME --input FILE --as EMAIL", "try a target; keeps nothing", runExec},
		{"run list", "--tenant T [--slug S] [--request-id ID] [--since WHEN] [--errors] [--limit N] [--json]", "list the runs of components and automations", runList},
		{"run show", "--tenant T --id ID", "show a run with its trace and console", runShow},
		{"run retry", "--tenant T --id ID", "run a failed delivery again", runRetry},
		{
			"share add", "--tenant T --entity E --record ID (--user EMAIL | --role R) [--access read|edit]",
			"share a record with a user or a role", shareAdd,
		},
		{
			"share remove", "--tenant T --entity E --record ID (--user EMAIL | --role R)",
			"remove a share", shareRemove,
		},
		{"share list", "--tenant T --entity E --record ID [--json]", "list the shares of a record", shareList},
		{
			"records import", "--tenant T --entity E [--by FIELD] [--user EMAIL | --owned-by EMAIL] [--dry-run] [--resume] FILE",
			"create and change records from a CSV or NDJSON file; - is standard input", recordsImport,
		},
		{
			"records export", "--tenant T --entity E [--format csv|ndjson] [--fields F,…] [--filter F=V]… [--user EMAIL]",
			"print records as CSV or NDJSON", recordsExport,
		},
		{
			"why", "--tenant T --user E --entity E --record ID [--verb read|update|delete] [--json]",
			"explain what a user may do with a record, and why", whyCommand,
		},
		{
			"audit", "--tenant T [--user EMAIL] [--endpoint PATTERN] [--request-id ID] [--since WHEN] [--errors] [--limit N] [--json]",
			"read the audit log, newest first", auditCommand,
		},
		{"history", "--tenant T [--kind K] [--limit N] [--json]", "read the change history, newest first", historyCommand},
		{"backup", "FILE", "copy an SQLite data folder while it is in use", backupCommand},
		{"restore", "FILE", "make a data folder from a backup", restoreCommand},
		{"copy", "--database URL [--data DIR | --to-data DIR] [--restart] [--json]", "copy everything from SQLite to PostgreSQL, or back", copyCommand},
		{"database distribute", "--database URL", "spread the tenants of a Citus database over its workers", databaseDistribute},
		{"health", "--ops-listen ADDR", "ask a server whether it is alive", healthCommand},
		{"help", "[COMMAND]", "explain the commands", nil},
		{"version", "", "print the version", nil},
	}
}

// usageError says why a command line was not understood.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// run runs one command line and returns the process's exit status.
func run(ctx context.Context, args []string, getenv func(string) string, stdin io.Reader, stdout, stderr io.Writer) int {
	e := &env{getenv: getenv, stdin: &interruptible{ctx: ctx, in: stdin}, stdout: stdout, stderr: stderr}
	err := e.dispatch(ctx, args)
	if err == nil || errors.Is(err, pflag.ErrHelp) {
		return 0
	}
	e.say("gatehouse: %s", oneLine(err))
	if errors.As(err, &usageError{}) {
		return 2
	}
	return 1
}

// dispatch finds the command that the arguments name, and executes it.
func (e *env) dispatch(ctx context.Context, args []string) error {
	words, rest := e.splitCommand(args)
	name := strings.Join(words, " ")
	asksHelp := slices.Contains(rest, "--help") || slices.Contains(rest, "-h")
	c, known := find(name)
	switch {
	case name == "help":
		return e.help(ctx, rest)
	case name == "version", len(words) == 0 && slices.Contains(rest, "--version"):
		return e.version()
	case known:
		return e.execute(ctx, c, rest)
	case len(words) == 0 && asksHelp:
		return e.help(ctx, nil)
	case len(words) == 0:
		return usagef(`no command is given; "gatehouse help" lists them`)
	case isGroup(name) && asksHelp:
		return e.help(ctx, words)
	case isGroup(name):
		return usagef(`%s needs one more word; "gatehouse help %s" lists them`, name, name)
	case len(words) == 2:
		return usagef(`there is no command %q; "gatehouse help %s" lists them`, name, words[0])
	}
	return usagef(`there is no command %q; "gatehouse help" lists them`, name)
}

// execute declares the command's flags, parses the arguments and runs the command.
func (e *env) execute(ctx context.Context, c command, args []string) error {
	f := e.flags(c)
	act := c.declare(f)
	if err := f.parse(args); err != nil {
		return err
	}
	return act(ctx)
}

// splitCommand separates the words of the command's name from all other
// arguments, which it returns in order. Flags may appear before, between and
// after the words.
func (e *env) splitCommand(args []string) (words, rest []string) {
	switches := e.switches()
	for i := 0; i < len(args); i++ {
		a := args[i]
		if len(a) > 1 && a[0] == '-' {
			rest = append(rest, a)
			takesValue := !strings.Contains(a, "=") && !switches[strings.TrimLeft(a, "-")]
			if takesValue && i+1 < len(args) {
				i++
				rest = append(rest, args[i])
			}
			continue
		}
		words = append(words, a)
		if len(words) == 2 || !isGroup(a) {
			return words, append(rest, args[i+1:]...)
		}
	}
	return words, rest
}

// switches returns the flags that take no value. A flag takes one in every
// command that has it, or in none.
func (e *env) switches() map[string]bool {
	known := map[string]bool{"help": true, "h": true, "version": true}
	for _, c := range commands() {
		if c.declare == nil {
			continue
		}
		f := e.flags(c)
		c.declare(f)
		f.VisitAll(func(flag *pflag.Flag) {
			if flag.NoOptDefVal != "" {
				known[flag.Name] = true
			}
		})
	}
	return known
}

func find(name string) (command, bool) {
	for _, c := range commands() {
		if c.name == name {
			return c, true
		}
	}
	return command{}, false
}

// isGroup reports whether a word is the first of commands with two words.
func isGroup(word string) bool {
	return slices.ContainsFunc(commands(), func(c command) bool { return strings.HasPrefix(c.name, word+" ") })
}

// oneLine returns the text of an error, with the fields that failed and that the text does
// not name itself, on one line for the operator.
func oneLine(err error) string {
	text := err.Error()
	var f *fault.Error
	if errors.As(err, &f) && text == f.Error() {
		text = f.Message
		if fields, ok := f.Details["fields"].(map[string]string); ok {
			var list []string
			for name, reason := range fields {
				if field := name + ": " + reason; reason != text && !strings.Contains(text, field) {
					list = append(list, field)
				}
			}
			slices.Sort(list)
			if len(list) > 0 {
				text += ": " + strings.Join(list, "; ")
			}
		}
	}
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}

// help explains the command that args name, or lists a group of commands, or all.
func (e *env) help(ctx context.Context, args []string) error {
	words := slices.DeleteFunc(slices.Clone(args), func(a string) bool { return strings.HasPrefix(a, "-") })
	name := strings.Join(words, " ")
	c, known := find(name)
	switch {
	case known && c.declare != nil:
		return e.execute(ctx, c, []string{"--help"})
	case known:
		name = ""
	case name != "" && !isGroup(name):
		return usagef(`there is no command %q; "gatehouse help" lists them`, name)
	}
	var b strings.Builder
	if name == "" {
		b.WriteString("Usage: gatehouse COMMAND [FLAG]… [ARGUMENT]…\n\nCommands:\n")
	} else {
		b.WriteString("Usage:\n")
	}
	for _, c := range commands() {
		if name == "" {
			fmt.Fprintf(&b, "  %-21s %s\n", c.name, c.summary)
		} else if strings.HasPrefix(c.name, name+" ") {
			fmt.Fprintf(&b, "  gatehouse %s %s\n        %s\n", c.name, c.usage, c.summary)
		}
	}
	fmt.Fprintf(&b, "\nFlags of every command:\n%s\n%s\n", e.flags(command{}).FlagUsages(), flagRules)
	if name == "" {
		b.WriteString("\"gatehouse help COMMAND\" explains one command.\n")
	}
	_, err := io.WriteString(e.stdout, b.String())
	return err
}

func (e *env) version() error {
	info, _ := debug.ReadBuildInfo()
	_, err := fmt.Fprintf(e.stdout, "gatehouse %s (%s, %s/%s)\n", versionOf(version, info), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}

// versionOf returns the version given by the Makefile, which takes it from the
// tag; or else the module's version, which go install records; or else the commit.
func versionOf(given string, info *debug.BuildInfo) string {
	if given != "" {
		return given
	}
	if info == nil {
		return "of an unknown commit"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	switch revision := settings["vcs.revision"]; {
	case revision == "":
		return "of an unknown commit"
	case settings["vcs.modified"] == "true":
		return "of commit " + revision + ", changed"
	default:
		return "of commit " + revision
	}
}
