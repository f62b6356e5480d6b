package mailtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/http"
	"net/mail"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Letter is a decoded mail of an outbox, the folder into which a server without SMTP
// writes its mails.
type Letter struct {
	To      string `json:"to"` // the address alone; "" if the mail has none that can be read
	Subject string `json:"subject"`
	Text    string `json:"text"`
	HTML    string `json:"html"`
}

// Letters returns every mail in an outbox, oldest first. There are none in a folder that
// does not exist.
func Letters(dir string) ([]Letter, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.eml"))
	if err != nil {
		return nil, err
	}
	slices.Sort(names) // names begin with the time
	var letters []Letter
	for _, name := range names {
		l, err := read(name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		letters = append(letters, l)
	}
	return letters, nil
}

// patience is how long Serve waits for a mail.
const patience = 30 * time.Second

// Serve returns a handler for the scripts of browser tests: GET with to=ADDRESS&n=N waits
// for the N-th mail to the address in an outbox, counted from 1, and is answered with the
// Letter in JSON; 404 if there is none within 30 s, 400 for an n that is no such number.
func Serve(dir string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, err := strconv.Atoi(r.FormValue("n"))
		if err != nil || n < 1 {
			http.Error(w, fmt.Sprintf("n: expected a number from 1, not %q", r.FormValue("n")), http.StatusBadRequest)
			return
		}
		for end := time.Now().Add(patience); time.Now().Before(end); {
			letters, err := Letters(dir)
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			letters = slices.DeleteFunc(letters, func(l Letter) bool { return l.To != r.FormValue("to") })
			if len(letters) >= n {
				_ = json.NewEncoder(w).Encode(letters[n-1]) // the script fails without it
				return
			}
			select {
			case <-r.Context().Done():
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
		http.Error(w, fmt.Sprintf("there is no mail number %d to %s", n, r.FormValue("to")), http.StatusNotFound)
	})
}

func read(name string) (l Letter, err error) {
	file, err := os.Open(name)
	if err != nil {
		return l, err
	}
	defer file.Close()
	m, err := mail.ReadMessage(file)
	if err != nil {
		return l, err
	}
	if to, err := mail.ParseAddress(m.Header.Get("To")); err == nil {
		l.To = to.Address
	}
	if l.Subject, err = new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject")); err != nil {
		return l, err
	}
	kind, parameters, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil {
		return l, err
	}
	if kind != "multipart/alternative" { // a mail without HTML
		text, err := io.ReadAll(quotedprintable.NewReader(m.Body))
		l.Text = string(text)
		return l, err
	}
	parts := multipart.NewReader(m.Body, parameters["boundary"])
	for {
		part, err := parts.NextPart() // decodes quoted-printable
		if errors.Is(err, io.EOF) {
			return l, nil
		}
		if err != nil {
			return l, err
		}
		content, err := io.ReadAll(part)
		if err != nil {
			return l, err
		}
		if strings.HasPrefix(part.Header.Get("Content-Type"), "text/html") {
			l.HTML = string(content)
		} else {
			l.Text = string(content)
		}
	}
}
