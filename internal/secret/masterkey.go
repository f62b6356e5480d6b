package secret

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// MasterKeyFile is the name of the master key in a data folder.
const MasterKeyFile = "master.key"

// MasterKeyOptions says where the master key may come from. LoadMasterKey uses the first
// of File, Env and Dir that is set.
type MasterKeyOptions struct {
	File string // --master-key-file
	Env  string // the value of GATEHOUSE_MASTER_KEY, not its name
	Dir  string // the data folder; empty with --database

	// CreateInDir makes Dir and Dir/master.key if no key is given. It must be false
	// for a folder with data, because a new key cannot open what is sealed there.
	CreateInDir bool
}

// LoadMasterKey reads or makes the master key: 32 bytes as 64 hex digits or as base64;
// white space around it is ignored. If several processes start at once in an empty
// folder, one makes the key and all return it. Errors are one line for the operator
// and never contain any of the key.
func LoadMasterKey(o MasterKeyOptions) (*Keyring, error) {
	switch {
	case o.File != "":
		return readMasterKey(o.File)
	case strings.TrimSpace(o.Env) != "":
		return parseMasterKey("GATEHOUSE_MASTER_KEY", o.Env)
	case o.Dir == "":
		return nil, errors.New("master key: none given: set --master-key-file or GATEHOUSE_MASTER_KEY (the same on every node)")
	}
	path := filepath.Join(o.Dir, MasterKeyFile)
	k, err := readMasterKey(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return k, err
	}
	if !o.CreateInDir {
		return nil, fmt.Errorf("master key: %s does not exist, and a new one could not read the secrets that are stored: "+
			"put back the key that the database was set up with, or name it with --master-key-file or GATEHOUSE_MASTER_KEY", path)
	}
	if err := createMasterKey(o.Dir, path); err != nil {
		return nil, fmt.Errorf("master key: cannot make %s: %w", path, err)
	}
	return readMasterKey(path) // perhaps another process was first, and this is its key
}

// createMasterKey writes a new key to path unless the file exists. It writes and syncs
// the key under a temporary name and then links it to path, which fails if path
// exists: no process reads half a key, and a crash leaves none.
func createMasterKey(dir, path string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	key := make([]byte, masterKeySize)
	_, _ = rand.Read(key) // never fails
	text := append(hex.AppendEncode(nil, key), '\n')

	temp := fmt.Sprintf("%s.%s.tmp", path, rand.Text())
	if err := writeNew(temp, text); err != nil {
		return err
	}
	defer os.Remove(temp)
	err := os.Link(temp, path)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		err = writeNew(path, text) // a file system without links
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncDir(dir)
}

// writeNew writes a file that must not exist, readable by its owner only, and returns
// once it is on disk.
func writeNew(path string, content []byte) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, f.Close())
		if err != nil {
			err = errors.Join(err, os.Remove(path))
		}
	}()
	if _, err := f.Write(content); err != nil {
		return err
	}
	return f.Sync()
}

func syncDir(dir string) error {
	if runtime.GOOS == "windows" { // it cannot sync a folder
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// readMasterKey reads a key file, the first 4 KiB of it, which is more than a key
// needs. It waits up to two seconds for an empty one: on a file system without links
// another process may have created it and not written it yet, and a pipe may not have
// a writer yet. Opening a pipe does not wait for a writer. It stays open meanwhile:
// what a writer writes to a pipe that was shut between is lost.
func readMasterKey(path string) (*Keyring, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("master key: %w", err)
	}
	defer f.Close()
	head, content := io.LimitReader(f, 4096), []byte(nil)
	for attempt := 0; ; attempt++ {
		if err := f.SetReadDeadline(time.Now().Add(pipeTimeout)); err != nil && !errors.Is(err, os.ErrNoDeadline) {
			return nil, fmt.Errorf("master key: %w", err)
		}
		more, err := io.ReadAll(head)
		if err != nil {
			return nil, fmt.Errorf("master key: %w", err)
		}
		content = append(content, more...)
		if len(bytes.TrimSpace(content)) > 0 || attempt == 40 {
			return parseMasterKey(path, string(content))
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// pipeTimeout bounds how long readMasterKey waits for what is written to a pipe. It is
// long enough for a command that fetches the key from a vault.
const pipeTimeout = 30 * time.Second

func parseMasterKey(from, text string) (*Keyring, error) {
	text = strings.TrimSpace(text)
	if len(text) == hex.EncodedLen(masterKeySize) {
		if key, err := hex.DecodeString(text); err == nil {
			return NewKeyring(key)
		}
	}
	for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
		if key, err := encoding.DecodeString(text); err == nil && len(key) == masterKeySize {
			return NewKeyring(key)
		}
	}
	return nil, fmt.Errorf("master key: %s: expected 32 bytes as 64 hex digits or as base64, found %d characters that are neither", from, len(text))
}
