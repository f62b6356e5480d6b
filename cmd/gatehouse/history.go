package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"gatehouse/internal/db"
	"gatehouse/internal/fault"
	"gatehouse/internal/manifest"
	"gatehouse/internal/tenant"
)

// changeLine is an entry of the change history as --json prints it.
type changeLine struct {
	ID   string  `json:"id"`
	Time *string `json:"time"`
	tenant.Change
}

// historyCommand prints the change history, newest first, while it reads it.
func historyCommand(f *flags) action {
	f.forTenant()
	filter := tenant.ChangeFilter{}
	f.StringVar(&filter.Kind, "kind", "", "only changes of objects of this `kind`, such as entity, user or api_key")
	f.IntVar(&filter.Limit, "limit", 0, "at most so many changes (0: all)")
	f.listing(", with what was there before and after")
	return func(ctx context.Context) error {
		if filter.Limit < 0 {
			return f.wrong("--limit %d: expected 0 or more", filter.Limit)
		}
		return f.onTenant(ctx, func(t *tenantDB) error {
			h, out, n := t.handle(), bufio.NewWriterSize(f.stdout, 64<<10), 0
			print := printChangeRow
			if f.asJSON {
				print = printChangeJSON
			}
			err := tenant.EachChange(ctx, h, filter, func(c tenant.Change) error {
				n++
				return print(out, c, n == 1)
			})
			if err == nil && n == 0 && filter.Kind != "" {
				err = noSuchKind(ctx, h, filter.Kind)
			}
			return errors.Join(err, out.Flush())
		})
	}
}

// noSuchKind returns NOT_FOUND for a kind that the history does not have, perhaps
// mistyped. The error names the kinds that the history has.
func noSuchKind(ctx context.Context, h db.Handle, kind string) error {
	kinds, err := tenant.ChangedKinds(ctx, h)
	if err != nil {
		return err
	}
	return fault.New(fault.NotFound, "the history has no change of kind %q; it has %s", kind, strings.Join(kinds, ", "))
}

func printChangeJSON(out *bufio.Writer, c tenant.Change, _ bool) error {
	return jsonEncoder(out).Encode(changeLine{c.ID, instant(c.At), c})
}

// printChangeRow prints a row of a table. Its columns have fixed widths, because
// the rows that follow are not known yet.
func printChangeRow(out *bufio.Writer, c tenant.Change, first bool) error {
	const columns = "%-27s  %-28s  %s\n"
	if first {
		if _, err := fmt.Fprintf(out, columns, "TIME", "WHO", "CHANGE"); err != nil {
			return err
		}
	}
	line := manifest.Change{Action: c.Action, Kind: c.Kind, Name: c.Name, Before: c.Before, After: c.After}.Line()
	_, err := fmt.Fprintf(out, columns, *instant(c.At), printable(c.Actor), line)
	return err
}
