// templates renders templates as Cluster API does: a case a line on standard input, what came of it a line on standard
// output, until the input ends. A case and its answer are written as `clusterclass render --cases` reads and
// writes them.
// With the argument `functions` it prints the names of sprig's functions instead.
//
// A template that makes Go end its process (a map that holds itself), or that goes on for too long, ends this one:
// whoever counts the answers knows which it was.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"text/template"
	"time"

	"github.com/Masterminds/sprig/v3"
	"sigs.k8s.io/yaml"
)

const (
	// Longest text that is rendered, bytes: more than the hub would take.
	outputMax = 4 << 20
	// Longest line of input, bytes.
	lineMax = 1 << 26
	// Longest that one template may take.
	patience = 20 * time.Second
	// How this process ends when one takes longer.
	tookTooLong = 3
)

type testCase struct {
	Template  string                     `json:"template"`
	Variables map[string]json.RawMessage `json:"variables"`
}

type answer struct {
	Rendered *string         `json:"rendered,omitempty"`
	Value    json.RawMessage `json:"value,omitempty"`
	// The stage that failed: parse, execute or yaml; bound, where the text was too long.
	Error   string `json:"error,omitempty"`
	Message string `json:"message,omitempty"`
}

func (a *answer) failed(stage string, err error) *answer {
	a.Error, a.Message = stage, err.Error()
	return a
}

var errTooLong = errors.New("the text is too long")

// bounded is a text that does not grow for ever.
type bounded struct{ bytes.Buffer }

func (b *bounded) Write(text []byte) (int, error) {
	if b.Len()+len(text) > outputMax {
		return 0, errTooLong
	}
	return b.Buffer.Write(text)
}

func render(one testCase) *answer {
	said := &answer{}
	// As Cluster API does it: the name is part of messages only.
	parsed, err := template.New("tpl").Funcs(sprig.HermeticTxtFuncMap()).Parse(one.Template)
	if err != nil {
		return said.failed("parse", err)
	}
	variables := map[string]any{}
	for name, text := range one.Variables {
		var value any
		if err := json.Unmarshal(text, &value); err != nil {
			return said.failed("variables", err)
		}
		variables[name] = value
	}
	var text bounded
	if err := parsed.Execute(&text, variables); errors.Is(err, errTooLong) {
		return said.failed("bound", err)
	} else if err != nil {
		return said.failed("execute", err)
	}
	rendered := text.String()
	said.Rendered = &rendered
	value, err := yaml.YAMLToJSON(text.Bytes())
	if err != nil {
		return said.failed("yaml", err)
	}
	said.Value = value
	return said
}

func serve(input io.Reader, output io.Writer) error {
	lines := bufio.NewScanner(input)
	lines.Buffer(nil, lineMax)
	for lines.Scan() {
		var one testCase
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			return err
		}
		watch := time.AfterFunc(patience, func() { os.Exit(tookTooLong) })
		said := render(one)
		watch.Stop()
		line, err := json.Marshal(said)
		if err != nil {
			return err
		}
		if _, err := output.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	return lines.Err()
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "functions" {
		for name := range sprig.HermeticTxtFuncMap() {
			fmt.Println(name)
		}
		return
	}
	if err := serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
