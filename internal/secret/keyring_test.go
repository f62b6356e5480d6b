package secret_test

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"gatehouse/internal/secret"
)

var masterBytes = bytes.Repeat([]byte{7, 9}, 16)

func ring(t testing.TB, master []byte) *secret.Keyring {
	t.Helper()
	k, err := secret.NewKeyring(master)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestWhatIsSealedOpensForItsPurposeOnly(t *testing.T) {
	k, other := ring(t, masterBytes), ring(t, bytes.Repeat([]byte{8}, 32))
	again := ring(t, masterBytes)
	rapid.Check(t, func(t *rapid.T) {
		purpose := rapid.String().Draw(t, "purpose")
		plain := rapid.SliceOf(rapid.Byte()).Draw(t, "plain")
		sealed := k.Seal(purpose, plain)
		if !strings.HasPrefix(sealed, "v1.") || sealed == k.Seal(purpose, plain) {
			t.Fatalf("sealed as %q", sealed)
		}
		if got, err := again.Open(purpose, sealed); err != nil || !bytes.Equal(got, plain) {
			t.Fatalf("opened as %q, %v", got, err)
		}
		if _, err := k.Open(purpose+"x", sealed); !errors.Is(err, secret.ErrOpen) {
			t.Fatalf("opens for another purpose: %v", err)
		}
		if _, err := other.Open(purpose, sealed); !errors.Is(err, secret.ErrOpen) {
			t.Fatalf("opens with another master key: %v", err)
		}
		at := rapid.IntRange(0, len(sealed)-1).Draw(t, "at")
		flipped := []byte(sealed)
		flipped[at] ^= byte(1 << rapid.IntRange(0, 6).Draw(t, "bit"))
		if _, err := k.Open(purpose, string(flipped)); !errors.Is(err, secret.ErrOpen) {
			t.Fatalf("opens though damaged at %d: %v", at, err)
		}
	})
	for _, sealed := range []string{"", "v1.", "v1.AAAA", "v2.AAAA", "nonsense", k.Seal("p", nil) + "\n", k.Seal("p", nil)[3:]} {
		if _, err := k.Open("p", sealed); !errors.Is(err, secret.ErrOpen) {
			t.Errorf("%q opens: %v", sealed, err)
		}
	}
}

func TestKeysOfDifferentPurposesAndSizesAreUnrelated(t *testing.T) {
	k := ring(t, masterBytes)
	a, b, c := k.Derive("refresh/t1", 32), k.Derive("refresh/t2", 32), k.Derive("refresh/t1", 16)
	if len(a) != 32 || len(c) != 16 || bytes.Equal(a, b) || bytes.HasPrefix(a, c) {
		t.Error(a, b, c)
	}
	if !bytes.Equal(a, ring(t, masterBytes).Derive("refresh/t1", 32)) {
		t.Error("another process derives another key")
	}
	defer func() {
		if recover() == nil {
			t.Error("a size of 0 is accepted")
		}
	}()
	k.Derive("x", 0)
}

// Stored data depends on these: a change of them is a change of format.
func TestTheFormatsStay(t *testing.T) {
	k := ring(t, masterBytes)
	if got := hex.EncodeToString(k.Derive("purpose", 8)); got != "1b9ef6b93bb657f6" {
		t.Error("Derive:", got)
	}
	if got := k.CheckValue(); got != "7f17adc16b37728b886a1899588c529da50207f7082d1eee589b3c6593879ead" {
		t.Error("CheckValue:", got)
	}
	if plain, err := k.Open("purpose", "v1.pT_o8tCc6p1MhWCjRB-eyMX2AdTG_vq9n9RTpqRAEn6mnQ"); err != nil || string(plain) != "golden" {
		t.Error("Open:", plain, err, k.Seal("purpose", []byte("golden")))
	}
}

func TestACheckValueTellsMasterKeysApart(t *testing.T) {
	if ring(t, masterBytes).CheckValue() == ring(t, bytes.Repeat([]byte{8}, 32)).CheckValue() {
		t.Error("two master keys, one check value")
	}
}

func TestAKeyringDoesNotPrintItsKey(t *testing.T) {
	k := ring(t, masterBytes)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x"} {
		if got := fmt.Sprintf(verb, k); got != "[secret]" {
			t.Errorf("%s: %s", verb, got)
		}
	}
}

func TestWhereTheMasterKeyComesFrom(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	keyOf := func(b byte) []byte { return bytes.Repeat([]byte{b}, 32) }
	url := bytes.Repeat([]byte{0xfb, 0xff}, 16)
	file := write("file", "  "+hex.EncodeToString(keyOf(1))+"\r\n")
	write("master.key", base64.StdEncoding.EncodeToString(keyOf(3)))
	for name, c := range map[string]struct {
		o    secret.MasterKeyOptions
		want []byte
	}{
		"the file comes first":           {secret.MasterKeyOptions{File: file, Env: hex.EncodeToString(keyOf(2)), Dir: dir}, keyOf(1)},
		"then the environment":           {secret.MasterKeyOptions{Env: strings.ToUpper(hex.EncodeToString(keyOf(0xab))), Dir: dir}, keyOf(0xab)},
		"then the data folder":           {secret.MasterKeyOptions{Dir: dir}, keyOf(3)},
		"an empty environment is none":   {secret.MasterKeyOptions{Env: " \n", Dir: dir}, keyOf(3)},
		"base64url without padding does": {secret.MasterKeyOptions{Env: base64.RawURLEncoding.EncodeToString(url)}, url},
		"base64 with white space does":   {secret.MasterKeyOptions{Env: "\t" + base64.StdEncoding.EncodeToString(url) + "\n"}, url},
	} {
		k, err := secret.LoadMasterKey(c.o)
		if err != nil || k.CheckValue() != ring(t, c.want).CheckValue() {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAMissingOrWrongMasterKeyIsOneClearLine(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad")
	if err := os.WriteFile(bad, []byte("hunter2-is-no-key"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, o := range map[string]secret.MasterKeyOptions{
		"bad: expected 32 bytes as 64 hex digits or as base64": {File: bad},
		"GATEHOUSE_MASTER_KEY: expected 32 bytes":              {Env: strings.Repeat("g", 64)},
		"absent: no such file":                                 {File: filepath.Join(dir, "absent"), Env: strings.Repeat("0", 64)},
		"none given: set --master-key-file":                    {CreateInDir: true},
		"master.key does not exist":                            {Dir: dir},
		"is a directory":                                       {File: dir},
		"not a directory":                                      {Dir: filepath.Join(bad, "sub"), CreateInDir: true},
		"found 63 characters":                                  {Env: strings.Repeat("0", 63)},
	} {
		k, err := secret.LoadMasterKey(o)
		if k != nil || err == nil || !strings.Contains(err.Error(), want) || strings.ContainsAny(err.Error(), "\n") ||
			strings.Contains(err.Error(), "hunter2") || !strings.HasPrefix(err.Error(), "master key: ") {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "master.key")); err == nil {
		t.Error("a key was made though nobody asked for it")
	}
}

// A pipe that nobody writes to must not hang the program that reads its key there.
func TestAMasterKeyInAPipe(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "master.key")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, o := range []secret.MasterKeyOptions{{File: path}, {Dir: dir, CreateInDir: true}} {
		if k, err := secret.LoadMasterKey(o); k != nil || err == nil || !strings.Contains(err.Error(), "found 0 characters") {
			t.Errorf("without a writer: %v", err)
		}
	}
	go func() { // it waits in open until the key is read
		if err := os.WriteFile(path, []byte(hex.EncodeToString(masterBytes)), 0o600); err != nil {
			t.Error(err)
		}
	}()
	if k, err := secret.LoadMasterKey(secret.MasterKeyOptions{File: path}); err != nil || k.CheckValue() != ring(t, masterBytes).CheckValue() {
		t.Errorf("with a writer: %v", err)
	}
}

// A pipe stays open until there is a writer: one that opens it at any moment is read.
func TestAMasterKeyInAPipeThatIsWrittenLater(t *testing.T) {
	path := filepath.Join(t.TempDir(), "master.key")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	loaded := make(chan error)
	go func() {
		_, err := secret.LoadMasterKey(secret.MasterKeyOptions{File: path})
		loaded <- err
	}()
	time.Sleep(200 * time.Millisecond) // it has found the pipe empty, or will
	var w *os.File
	for deadline := time.Now().Add(1500 * time.Millisecond); w == nil; time.Sleep(time.Millisecond) {
		var err error
		if w, err = os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0); err != nil && time.Now().After(deadline) {
			t.Fatalf("nobody has the pipe open: %v", err)
		}
	}
	time.Sleep(100 * time.Millisecond) // a slow writer
	if _, err := w.WriteString(hex.EncodeToString(masterBytes)); err != nil {
		t.Error(err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if err := <-loaded; err != nil {
		t.Error(err)
	}
}

func TestProcessesThatStartAtOnceAgreeOnOneNewKey(t *testing.T) {
	for range 20 {
		dir := filepath.Join(t.TempDir(), "gatehouse-data")
		var wait sync.WaitGroup
		checks := make([]string, 16)
		for i := range checks {
			wait.Go(func() {
				k, err := secret.LoadMasterKey(secret.MasterKeyOptions{Dir: dir, CreateInDir: true})
				if err != nil {
					t.Error(err)
					return
				}
				checks[i] = k.CheckValue()
			})
		}
		wait.Wait()
		for _, c := range checks {
			if c != checks[0] {
				t.Fatal("two processes hold two keys")
			}
		}
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) != 1 {
			t.Fatalf("left in the folder: %v, %v", entries, err)
		}
		if info, err := entries[0].Info(); err != nil || info.Mode() != 0o600 {
			t.Fatalf("mode %v, %v", info.Mode(), err)
		}
	}
}

func FuzzOpen(f *testing.F) {
	k := ring(f, masterBytes)
	f.Add("p", k.Seal("p", []byte("x")))
	f.Fuzz(func(t *testing.T, purpose, sealed string) {
		if plain, err := k.Open(purpose, sealed); err == nil && purpose != "p" {
			t.Fatalf("%q opens as %q for %q", sealed, plain, purpose)
		}
	})
}

func BenchmarkSeal(b *testing.B) {
	k, plain := ring(b, masterBytes), make([]byte, 64)
	_, _ = rand.Read(plain)
	b.ReportAllocs()
	for b.Loop() {
		_ = k.Seal("webhook", plain)
	}
}

func BenchmarkOpen(b *testing.B) {
	k := ring(b, masterBytes)
	sealed := k.Seal("webhook", make([]byte, 64))
	b.ReportAllocs()
	for b.Loop() {
		_, _ = k.Open("webhook", sealed)
	}
}
