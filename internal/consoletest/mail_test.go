//go:build !race

package consoletest

import (
	"encoding/json"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/mail"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// letter is a mail that the server has written into its outbox.
type letter struct {
	Subject string `json:"subject"`
	Text    string `json:"text"`
}

// serveMail waits for the n-th mail to an address, counted from 1, and answers with it.
func serveMail(w http.ResponseWriter, r *http.Request, dir string) {
	n, err := strconv.Atoi(r.FormValue("n"))
	if err != nil || n < 1 {
		http.Error(w, "n: expected a number from 1", http.StatusBadRequest)
		return
	}
	for range 400 {
		letters, err := lettersTo(dir, r.FormValue("to"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		if len(letters) >= n {
			_ = json.NewEncoder(w).Encode(letters[n-1]) // the script fails without it
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
	http.Error(w, "there is no such mail", http.StatusNotFound)
}

// lettersTo returns every mail to an address, oldest first.
func lettersTo(dir, to string) ([]letter, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.eml"))
	if err != nil {
		return nil, err
	}
	slices.Sort(names) // names begin with the time
	var letters []letter
	for _, name := range names {
		l, addressed, err := readLetter(name, to)
		if err != nil {
			return nil, err
		}
		if addressed {
			letters = append(letters, l)
		}
	}
	return letters, nil
}

// readLetter reads a mail and its first part, the plain text.
func readLetter(name, to string) (l letter, addressed bool, err error) {
	file, err := os.Open(name)
	if err != nil {
		return l, false, err
	}
	defer file.Close()
	m, err := mail.ReadMessage(file)
	if err != nil {
		return l, false, err
	}
	if recipient, err := mail.ParseAddress(m.Header.Get("To")); err != nil || recipient.Address != to {
		return l, false, nil // a mail to nobody is not to this address
	}
	if l.Subject, err = new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject")); err != nil {
		return l, false, err
	}
	_, parameters, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil {
		return l, false, err
	}
	part, err := multipart.NewReader(m.Body, parameters["boundary"]).NextPart() // decodes quoted-printable
	if err != nil {
		return l, false, err
	}
	content, err := io.ReadAll(part)
	if err != nil {
		return l, false, err
	}
	l.Text = string(content)
	return l, true, nil
}
