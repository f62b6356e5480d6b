package mail

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// Files returns a Sender that writes each mail to a file of its own,
// DIR/<time>-<random>.eml, which mail programs can open. The file appears whole or
// not at all, and only its owner may read it. The folder is created with the first
// mail.
func Files(dir string) Sender { return files(dir) }

type files string

// Send writes the file and syncs it. It returns a *Permanent if the message cannot
// be composed, and a *Failure of StepFile if the file cannot be written or ctx has
// ended.
func (dir files) Send(ctx context.Context, m Message) error {
	if err := ctx.Err(); err != nil {
		return failed(StepFile, err)
	}
	l, err := compose(m)
	if err != nil {
		return err
	}
	name := l.date.UTC().Format("20060102T150405.000000Z") + "-" + strings.ToLower(rand.Text()[:12]) + ".eml"
	if err := dir.write(name, l.content); err != nil {
		return failed(StepFile, err)
	}
	return nil
}

func (dir files) write(name string, content []byte) error {
	if err := os.MkdirAll(string(dir), 0o700); err != nil {
		return err
	}
	final := filepath.Join(string(dir), name)
	temporary := filepath.Join(string(dir), "."+name+".part")
	f, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(temporary, final)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temporary))
	}
	return syncFolder(string(dir))
}

// syncFolder makes new names in a folder durable.
func syncFolder(dir string) error {
	if runtime.GOOS == "windows" { // it cannot sync a folder
		return nil
	}
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
