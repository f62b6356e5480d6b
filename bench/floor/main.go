// Command floor answers captured bytes from a bare net/http handler. It measures what a
// request costs without authentication, permissions and storage. The throughput of a
// contestant divided by the floor's is the share that it keeps.
package main

import (
	"encoding/json"
	"flag"
	"log"
	"net/http"
	"os"
	"time"
)

// answer is one captured response; Date is net/http's own.
type answer struct {
	Status int         `json:"status"`
	Header http.Header `json:"header"`
	Body   []byte      `json:"body"`
}

func (a *answer) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	h := w.Header()
	for name, values := range a.Header {
		h[name] = values
	}
	w.WriteHeader(a.Status)
	_, _ = w.Write(a.Body) // a client that went away is not the floor's concern
}

func load(path string) *answer {
	raw, err := os.ReadFile(path)
	if err != nil {
		log.Fatal(err)
	}
	a := new(answer)
	if err := json.Unmarshal(raw, a); err != nil {
		log.Fatalf("%s: %v", path, err)
	}
	return a
}

func main() {
	listen := flag.String("listen", "127.0.0.1:8070", "address to serve on")
	one := flag.String("one", "", "file with the captured answer to a read")
	list := flag.String("list", "", "file with the captured answer to a list")
	flag.Parse()

	mux := http.NewServeMux()
	mux.Handle("GET /public/v1/data/contact/{id}", load(*one))
	mux.Handle("GET /public/v1/data/contact", load(*list))
	server := &http.Server{Addr: *listen, Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	log.Fatal(server.ListenAndServe())
}
