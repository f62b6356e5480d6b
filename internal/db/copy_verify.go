package db

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"slices"
	"strconv"
	"strings"
)

// CopiedTable is a table of the source and of the target, as they were compared.
type CopiedTable struct {
	Table                string
	Rows, TargetRows     int64
	Digest, TargetDigest string // SHA-256 of all rows in the order of their keys
}

// Equal reports whether the target has what the source has.
func (t CopiedTable) Equal() bool { return t.Rows == t.TargetRows && t.Digest == t.TargetDigest }

// verify reads all rows of both databases again and compares them, table by table.
func (c *Copy) verify(ctx context.Context, from *snapshot, days []Day) (tables []CopiedTable, err error) {
	to, err := c.To.snapshot(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, to.end()) }()
	for _, t := range c.plan.tables {
		compared, err := c.compare(ctx, from, to, t, t.name, nil)
		if err != nil {
			return tables, fmt.Errorf("compare %s: %w", t.name, err)
		}
		tables = append(tables, compared)
	}
	installed := CopiedTable{Table: "installation"}
	if installed.Rows, installed.Digest, err = digestInstallation(ctx, from); err != nil {
		return tables, err
	}
	if installed.TargetRows, installed.TargetDigest, err = digestInstallation(ctx, to); err != nil {
		return tables, err
	}
	tables = append(tables, installed)
	there, err := c.To.days.List(ctx)
	if err != nil {
		return tables, err
	}
	for _, day := range there {
		if !slices.Contains(days, day) {
			return tables, fmt.Errorf("%w: the target has an audit log of %s", ErrDiffers, day)
		}
	}
	for _, day := range days {
		err := withDay(ctx, c.From, from, day, func(from *snapshot) error {
			return withDay(ctx, c.To, to, day, func(to *snapshot) error {
				for _, t := range c.plan.byDay {
					compared, err := c.compare(ctx, from, to, t, t.name+" "+day.String(), &day)
					if err != nil {
						return err
					}
					tables = append(tables, compared)
				}
				return nil
			})
		})
		if err != nil {
			return tables, fmt.Errorf("compare the audit log of %s: %w", day, err)
		}
	}
	var differ []string
	for _, t := range tables {
		if !t.Equal() {
			differ = append(differ, fmt.Sprintf("%s (%d rows in the source, %d in the target)", t.Table, t.Rows, t.TargetRows))
		}
	}
	if len(differ) > 0 {
		return tables, fmt.Errorf("%w in %s: was the source written to between the first run of the copy and this one? --restart begins anew",
			ErrDiffers, strings.Join(differ, ", "))
	}
	return tables, nil
}

// compare reads a table of both databases, side by side.
func (c *Copy) compare(ctx context.Context, from, to *snapshot, t copyTable, name string, day *Day) (CopiedTable, error) {
	compared := CopiedTable{Table: name}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	read := make(chan error, 1)
	go func() {
		var err error
		compared.TargetRows, compared.TargetDigest, err = t.digest(ctx, to, day, c.batchRows, func(int64) error { return nil })
		read <- err
	}()
	var err error
	compared.Rows, compared.Digest, err = t.digest(ctx, from, day, c.batchRows, func(rows int64) error {
		return c.progress(CopyProgress{Table: name, Rows: rows, Verify: true})
	})
	if err != nil {
		cancel()
	}
	if failed := <-read; err == nil {
		err = failed
	}
	if err == nil {
		err = c.progress(CopyProgress{Table: name, Rows: compared.Rows, Verify: true, Done: true})
	}
	return compared, err
}

// digest returns the number of rows of a table and the SHA-256 of all of them in the
// order of their keys, in a form that is the same for both engines. each is called after each
// batch with the rows so far.
func (t copyTable) digest(ctx context.Context, s *snapshot, day *Day, most int, each func(rows int64) error) (rows int64, digest string, err error) {
	h := sha256.New()
	var canonical []byte
	err = t.batches(ctx, s, day, nil, most, func(b *copyBatch) error {
		for i := range b.rows {
			for j, at := range b.row(t, i) {
				v := b.value(at)
				if t.columns[j].kind == kindJSON && !at.null {
					if canonical, err = canonicalJSON(canonical[:0], v); err != nil {
						return fmt.Errorf("column %s: %w", t.columns[j].name, err)
					}
					v = canonical
				}
				hashValue(h, v, at.null)
			}
		}
		rows += int64(b.rows)
		return each(rows)
	})
	return rows, hex.EncodeToString(h.Sum(nil)), err
}

// hashValue adds a value and its length.
func hashValue(h hash.Hash, v []byte, null bool) {
	var head [9]byte
	if null {
		head[0] = 1
	}
	binary.BigEndian.PutUint64(head[1:], uint64(len(v)))
	h.Write(head[:])
	h.Write(v)
}

func digestInstallation(ctx context.Context, s *snapshot) (int64, string, error) {
	list, err := installation(ctx, s)
	h := sha256.New()
	for _, v := range list {
		hashValue(h, []byte(v[0]), false)
		hashValue(h, []byte(v[1]), false)
	}
	return int64(len(list)), hex.EncodeToString(h.Sum(nil)), err
}

// canonicalJSON appends a JSON text in the one form that JSONB and the text that it was made of
// share: members in the order of their names, the last of those of one name, numbers
// as their digits and a power of ten.
func canonicalJSON(dst, text []byte) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	return appendCanonical(dst, v), nil
}

func appendCanonical(dst []byte, v any) []byte {
	switch v := v.(type) {
	case map[string]any:
		names := make([]string, 0, len(v))
		for name := range v {
			names = append(names, name)
		}
		slices.Sort(names)
		dst = append(dst, '{')
		for _, name := range names {
			dst = strconv.AppendQuote(dst, name)
			dst = append(dst, ':')
			dst = append(appendCanonical(dst, v[name]), ',')
		}
		return append(dst, '}')
	case []any:
		dst = append(dst, '[')
		for _, e := range v {
			dst = append(appendCanonical(dst, e), ',')
		}
		return append(dst, ']')
	case string:
		return strconv.AppendQuote(dst, v)
	case json.Number:
		return appendDecimal(dst, string(v))
	case bool:
		return strconv.AppendBool(dst, v)
	default:
		return append(dst, "null"...)
	}
}

// appendDecimal appends the significant digits of a JSON number and the power of ten of the
// last of them: 120 and 1.2e2 are both 12e1.
func appendDecimal(dst []byte, number string) []byte {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(number), "e")
	power, _ := strconv.Atoi(exponent) // "" is 0; no double has an exponent beyond an int
	negative := strings.HasPrefix(mantissa, "-")
	whole, fraction, _ := strings.Cut(strings.TrimPrefix(mantissa, "-"), ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	power -= len(fraction)
	trimmed := strings.TrimRight(digits, "0")
	power += len(digits) - len(trimmed)
	if trimmed == "" {
		return append(dst, '0')
	}
	if negative {
		dst = append(dst, '-')
	}
	dst = append(append(dst, trimmed...), 'e')
	return strconv.AppendInt(dst, int64(power), 10)
}
