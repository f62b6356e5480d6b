package manifest

import (
	"bytes"
	"fmt"
	"regexp"
	"sort"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)

// syntax explains why a text is not YAML. The parser's own words do not help with
// the mistakes that are made most often: those are looked for in the lines around
// the one that it names: the one before, or those after it where a value takes several.
func (d *document) syntax(err error) {
	first, _, _ := strings.Cut(err.Error(), "\n")
	m := yamlLine.FindStringSubmatch(first)
	if m == nil {
		d.add(start, "not YAML: %s", first)
		return
	}
	line, _ := strconv.Atoi(m[1])
	for _, mistake := range mistakes {
		if !strings.Contains(m[2], mistake.words) {
			continue
		}
		for i, at := range []int{line, line + 1, line - 1, line + 2, line + 3, line + 4, line + 5} {
			text := textOfLine(d.src, at)
			if i > 2 && (strings.HasPrefix(strings.TrimSpace(text), "- ") || text == strings.TrimLeft(text, " \t")) {
				break // another item, or key, than the one that is not right
			}
			if remedy := mistake.find(text); remedy != "" {
				d.add(position{line: at}, "not YAML: %s", remedy)
				return
			}
		}
	}
	remedy := remedies[m[2]]
	switch {
	case strings.Contains(remedy, "%s"): // the line is where the mapping or list begins, however far above the mistake
		begins := ""
		if at := firstWith(d.src, m[2]); at > line+1 {
			begins, line = fmt.Sprintf(" that begins on line %d", line+1), at
		} else {
			line = at
		}
		remedy = fmt.Sprintf(remedy, begins)
	case m[1] == "":
		line = firstWith(d.src, m[2])
	case strings.HasPrefix(m[2], "did not find expected"):
		line++ // the parser counts from 0, unlike the scanner below it
	}
	d.add(position{line: line}, "not YAML: %s%s", m[2], remedy)
}

// firstWith is the line that a mistake is on: without it, and what follows, the parser
// does not say the same words.
func firstWith(src []byte, words string) int {
	var ends []int // of lines
	for i, c := range src {
		if c == '\n' {
			ends = append(ends, i+1)
		}
	}
	return 1 + sort.Search(len(ends), func(i int) bool {
		var n yaml.Node
		dec := yaml.NewDecoder(bytes.NewReader(src[:ends[i]]))
		err := dec.Decode(&n)
		if err == nil {
			err = dec.Decode(&n)
		}
		return err != nil && strings.Contains(err.Error(), words)
	})
}

// textOfLine is a line of a text, counted from 1; nothing where there is none.
func textOfLine(src []byte, n int) string {
	for ; n > 1 && len(src) > 0; n-- {
		_, src, _ = bytes.Cut(src, []byte("\n"))
	}
	if n < 1 {
		return ""
	}
	text, _, _ := bytes.Cut(src, []byte("\n"))
	return string(text)
}

// mistakes are those that a line shows. words are the parser's; find says what is
// to be done, or nothing.
var mistakes = []struct {
	words string
	find  func(line string) string
}{
	{"tab character", indentedByTab},
	{"cannot start any token", indentedByTab},
	{"did not find expected ','", unquotedVariable}, // of {…} and […] alone
}

func indentedByTab(line string) string {
	if indent := line[:len(line)-len(strings.TrimLeft(line, " \t"))]; strings.Contains(indent, "\t") {
		return "the line is indented with a tab: YAML takes spaces alone, so put spaces in its place"
	}
	return ""
}

var envName = regexp.MustCompile(`\$\{[A-Za-z_][A-Za-z0-9_]*\}`)

// unquotedVariable looks for ${NAME} without quotes inside of {…} or […], where
// YAML takes its braces for a mapping's.
func unquotedVariable(line string) string {
	for _, at := range envName.FindAllStringIndex(line, -1) {
		before := line[:at[0]]
		if strings.Count(before, `"`)%2 == 0 && strings.Count(before, `'`)%2 == 0 {
			name := line[at[0]:at[1]]
			return name + " needs quotes inside of {…} and […]: write \"" + name + "\""
		}
	}
	return ""
}

// remedies are added to the parser's words.
var remedies = map[string]string{
	"did not find expected key":                                    "; the keys of the mapping%s stand in one column: compare the indentation",
	"did not find expected '-' indicator":                          "; the items of the list%s stand in one column, each behind \"- \": compare the indentation",
	"did not find expected ',' or '}'":                             "; a comma or the closing } is missing",
	"did not find expected ',' or ']'":                             "; a comma or the closing ] is missing",
	"could not find expected ':'":                                  "; a key ends in \": \", with a space before its value",
	"found a tab character where an indentation space is expected": "; put spaces in its place",
	"found character that cannot start any token":                  "; a text that begins with @, % or ` needs quotes",
	"mapping values are not allowed in this context":               `; a text with ": " in it needs quotes, and the keys of a mapping begin in one column`,
}

// unquotedTemplate reports whether a node is what YAML makes of {{…}} without quotes.
func unquotedTemplate(n *yaml.Node) bool {
	return n.Kind == yaml.MappingNode && n.Style&yaml.FlowStyle != 0 && len(n.Content) > 0 && n.Content[0].Kind == yaml.MappingNode
}
