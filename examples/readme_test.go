package examples_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/gatetest/program"
)

// TestReadmesAsTyped does what the READMEs of the examples say. The first shell block
// serves the example; the others run in another terminal, one after the other. The
// JSON after a block is the answer to its last curl, a text is what it prints. Only the
// port differs. The dealer's is done on both engines.
func TestReadmesAsTyped(t *testing.T) {
	if out, err := exec.CommandContext(t.Context(), "../scripts/need", "curl").CombinedOutput(); err != nil {
		t.Fatalf("need curl: %v: %s", err, out)
	}
	project := t.TempDir()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(project, "bin")
	if err := errors.Join(os.Mkdir(bin, 0o700), os.Symlink(program.Build(t), filepath.Join(bin, "gatehouse")),
		os.Symlink(here, filepath.Join(project, "examples"))); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"quote", "checkout", "order-intake", "iot-reading", "lead-form", "portal", "dealer"} {
		t.Run(folder, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(folder, "README.md"))
			if err != nil {
				t.Fatal(err)
			}
			blocks := shellBlocks(string(text))
			if folder == "portal" {
				blocks = portalBlocks(t, blocks)
			}
			if len(blocks) < 3 {
				t.Fatalf("README.md has %d shell blocks", len(blocks))
			}
			if folder == "dealer" {
				blocks = append(blocks, whoSeesWhat)
			}
			follow(t, project, blocks)
			if folder == "dealer" {
				t.Setenv("GATEHOUSE_DATABASE", dbtest.Config(t, db.Postgres).URL)
				t.Setenv("GATEHOUSE_MASTER_KEY", strings.Repeat("5e", 32))
				t.Run("postgres", func(t *testing.T) { follow(t, project, blocks) })
			}
		})
	}
}

// aShop is a manifest to which the lines of the verifiers' README are added.
const aShop = `tenant: shop
public_api: {enabled: true}
users:
  - {email: olivia@shop.example, name: Olivia, owner: true}
automations:
  - name: invoice_paid
    trigger: http.request
    input_schema: [{name: type, type: text}]
    outputs: [{name: kind, type: text}]
    nodes:
      - {type: output, set: {kind: "{{event.kind}}"}}
`

// TestTheVerifiersReadmeAsTyped applies the README's lines to a shop's manifest: the endpoint, and
// then the rotation of its secret.
func TestTheVerifiersReadmeAsTyped(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("verifiers", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	yaml := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	shell := shellBlocks(string(text))
	if len(yaml) != 2 || len(shell) != 1 {
		t.Fatalf("the README has %d manifests and %d shell blocks", len(yaml), len(shell))
	}
	secret, rest, _ := strings.Cut(yaml[1][1], "\n")
	if strings.Count(yaml[0][1], secret) != 1 {
		t.Fatalf("the rotation begins with a line that the endpoint does not have: %s", secret)
	}
	project, bin := t.TempDir(), program.Build(t)
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	shop := filepath.Join(project, "my-shop")
	if err := errors.Join(os.MkdirAll(filepath.Join(shop, "verifiers"), 0o700), os.Symlink(here, filepath.Join(project, "examples"))); err != nil {
		t.Fatal(err)
	}
	run := func(dir, name string, args ...string) string {
		t.Helper()
		command := exec.CommandContext(t.Context(), name, args...)
		command.Dir = dir
		command.Env = append(os.Environ(), "STRIPE_WEBHOOK_SECRET=whsec_1", "STRIPE_WEBHOOK_SECRET_OLD=whsec_0")
		out, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", name, args, err, out)
		}
		return string(out)
	}
	run(project, "bash", "-euc", shell[0].text)
	for _, manifest := range []string{yaml[0][1], strings.Replace(yaml[0][1], secret+"\n", secret+"\n"+rest, 1)} {
		if err := os.WriteFile(filepath.Join(shop, "manifest.yaml"), []byte(aShop+manifest), 0o600); err != nil {
			t.Fatal(err)
		}
		if out := run(shop, bin, "apply", "--data", "data", "-f", "manifest.yaml"); !strings.Contains(out, "stripe") {
			t.Errorf("apply does not say what it did to the endpoint: %s", out)
		}
	}
}

const documented = "127.0.0.1:8081"

// shellBlock is a block of commands, and the JSON or the text that follows it, if any.
type shellBlock struct{ text, answer, printed string }

func shellBlocks(readme string) []shellBlock {
	var list []shellBlock
	fresh := false // nothing was seen since the last shell block
	for _, m := range regexp.MustCompile("(?s)```(sh|json|text)\n(.*?)\n```").FindAllStringSubmatch(readme, -1) {
		switch {
		case m[1] == "sh":
			list = append(list, shellBlock{text: m[2]})
		case fresh && m[1] == "json":
			list[len(list)-1].answer = m[2]
		case fresh:
			list[len(list)-1].printed = m[2]
		}
		fresh = m[1] == "sh"
	}
	return list
}

// customer is a script that does with curl what a customer does in the pages of the
// portal. LINE is replaced by the README's command that finds the link in the newest mail.
const customer = `
api() { curl -s "http://127.0.0.1:8081/public/v1$1" -H 'Content-Type: application/json' "${@:2}"; }
member() { grep -o "\"$1\":\"[^\"]*" | cut -d'"' -f4; }
api /auth/register -d '{"email": "jo@customer.example", "password": "a bell, a basket", "name": "Jo"}'
for _ in {1..200}; do ls portal-data/outbox/*.eml >/dev/null 2>&1 && break; sleep 0.05; done
LINK=$(LINE)
[[ $LINK == http://127.0.0.1:8090/verify?token=* ]]
api /auth/verify -d '{"token": "'"${LINK#*token=}"'"}'
JO=$(api /auth/login -d '{"email": "jo@customer.example", "password": "a bell, a basket"}' | member accessToken)
ID=$(api /data/ticket -H "Authorization: Bearer $JO" -d '{"title": "Chain slips"}' | member id)`

// seen prints the numbers of the orders and the items that the customer sees.
const seen = `
echo "{\"orders\": \"$(api /data/order -H "Authorization: Bearer $JO" | member number)\", \"items\": \"$(api /data/order_line -H "Authorization: Bearer $JO" | member item)\"}"`

// portalBlocks replaces the block that starts the pages with the customer's script, and
// asks what the customer sees before they have a company, while they have it, and after.
func portalBlocks(t *testing.T, blocks []shellBlock) []shellBlock {
	t.Helper()
	if len(blocks) != 8 || blocks[1].text != "go run ./examples/portal" || !strings.HasPrefix(blocks[2].text, "perl ") || !strings.HasPrefix(blocks[6].text, "bin/gatehouse why ") {
		t.Fatalf("the portal's README has other blocks: %q", blocks)
	}
	none, all := shellBlock{text: seen, answer: `{"orders": "", "items": ""}`}, shellBlock{text: seen, answer: `{"orders": "FC-1", "items": "Chain"}`}
	why := shellBlock{text: "WHY=$(" + blocks[6].text + ")\n" + `grep -F "account is the user's account" <<<"$WHY" >/dev/null || { echo "$WHY" >&2; false; }`}
	return []shellBlock{
		blocks[0], {text: strings.Replace(customer, "LINE", blocks[2].text, 1)}, blocks[3], blocks[4], none, blocks[5], all, why, blocks[7], none,
	}
}

// whoSeesWhat follows the dealer's README and prints what each of its people sees in
// the end, which the README says in words.
var whoSeesWhat = shellBlock{text: `for who in EVA ZOE SAM MIA TESS TOM SHOP; do
	for what in account order order_line device reading; do
		echo $who $what: $(api data/$what ${!who} | grep -oE '"(name|number|item|serial|pressure|code)":[^,}]*' | cut -d: -f2 | sort)
	done
done`, printed: `EVA account: "Alder Works"
EVA order: "SO-1001"
EVA order_line: "Hydraulic press HP-40" "Oil filter"
EVA device: "HP-40-0017"
EVA reading: 212.5
ZOE account: "Birch Ltd"
ZOE order: "SO-2001"
ZOE order_line:
ZOE device: "HP-40-0018"
ZOE reading:
SAM account: "Alder Works" "Birch Ltd"
SAM order: "SO-1001" "SO-2001"
SAM order_line: "Hydraulic press HP-40" "Oil filter"
SAM device: "HP-40-0017"
SAM reading: 212.5
MIA account: "Alder Works" "Birch Ltd"
MIA order: "SO-1001" "SO-2001"
MIA order_line: "Hydraulic press HP-40" "Oil filter"
MIA device: "HP-40-0017" "HP-40-0018"
MIA reading: 212.5
TESS account: "Alder Works" "Birch Ltd"
TESS order: "FORBIDDEN"
TESS order_line: "FORBIDDEN"
TESS device: "HP-40-0017" "HP-40-0018"
TESS reading: 212.5
TOM account: "Alder Works" "Birch Ltd"
TOM order: "FORBIDDEN"
TOM order_line: "FORBIDDEN"
TOM device: "HP-40-0017"
TOM reading: 212.5
SHOP account: "Alder Works" "Birch Ltd"
SHOP order: "SO-1001"
SHOP order_line: "Hydraulic press HP-40" "Oil filter"
SHOP device: "FORBIDDEN"
SHOP reading: "FORBIDDEN"`}

func follow(t *testing.T, project string, blocks []shellBlock) {
	t.Helper()
	home := t.TempDir()
	address := serveAsTyped(t, project, blocks[0].text)
	rc := fmt.Sprintf("connect-to = %q\nfail-with-body\nshow-error\n", documented+":"+address)
	if err := os.WriteFile(filepath.Join(home, ".curlrc"), []byte(rc), 0o600); err != nil {
		t.Fatal(err)
	}
	const end = "-- the end of a block --"
	var typed strings.Builder
	for _, b := range blocks[1:] {
		typed.WriteString(b.text + "\necho '" + end + "'\n")
	}
	command := exec.CommandContext(t.Context(), "bash", "-euc", typed.String())
	command.Dir = project
	command.Env = append(os.Environ(), "CURL_HOME="+home)
	var words bytes.Buffer
	command.Stderr = &words
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%v\n%s\n%s\n%s", err, typed.String(), out, words.String())
	}
	for i, text := range strings.Split(string(out), end)[:len(blocks)-1] {
		if printed := blocks[1+i].printed; printed != "" {
			if !alike(text, printed) {
				t.Errorf("%s\nprints %s\nwant %s", blocks[1+i].text, text, printed)
			}
			continue
		}
		last := lastJSON(t, text)
		if answer := blocks[1+i].answer; answer != "" {
			want(t, blocks[1+i].text, last, answer)
		}
	}
}

// alike reports whether a text is as expected; "…" in that stands for any text.
func alike(text, expected string) bool {
	pattern := strings.ReplaceAll(regexp.QuoteMeta(expected), "…", ".+")
	return regexp.MustCompile("(?s)^" + pattern + "$").MatchString(strings.TrimSpace(text))
}

// lastJSON returns the last of several JSON values.
func lastJSON(t *testing.T, text string) (last any) {
	t.Helper()
	for d := json.NewDecoder(strings.NewReader(text)); ; {
		var v any
		err := d.Decode(&v)
		if errors.Is(err, io.EOF) {
			return last
		}
		if err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		last = v
	}
}

// serveAsTyped runs the block that serves an example until the test ends. It omits
// `make server`, because the program is already built.
func serveAsTyped(t *testing.T, project, block string) (address string) {
	t.Helper()
	rest, built := strings.CutPrefix(block, "make server\n")
	if !built || strings.Count(rest, "--listen "+documented) != 1 {
		t.Fatalf("not a block that serves an example:\n%s", block)
	}
	// exec, so that the signal at the end reaches the server.
	typed := strings.Replace(strings.Replace(rest, documented, "127.0.0.1:0", 1), "bin/gatehouse serve", "exec bin/gatehouse serve", 1)
	command := exec.Command("bash", "-euc", typed)
	command.Dir = project
	return program.Serve(t, command)
}
