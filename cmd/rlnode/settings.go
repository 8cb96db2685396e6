package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/spf13/pflag"
)

// settle gives flags that were not set their value from the environment, else
// from the file named by --config. An unknown key of the file is an error.
func settle(flags *pflag.FlagSet) error {
	var errs []error
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed || f.Name == "help" {
			return
		}
		name := "RLNODE_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		if v, ok := os.LookupEnv(name); ok {
			if err := flags.Set(f.Name, v); err != nil {
				errs = append(errs, fmt.Errorf("%s=%q: %w", name, v, err))
			}
		}
	})
	if err := errors.Join(errs...); err != nil {
		return usageError{err}
	}
	path, err := flags.GetString("config")
	if err != nil || path == "" {
		return nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("--config: %w", err)
	}
	if err := settleFile(flags, path, data); err != nil {
		return usageError{err}
	}
	return nil
}

// settleFile takes values from a YAML mapping of flag names.
func settleFile(flags *pflag.FlagSet, path string, data []byte) error {
	file, err := parser.ParseBytes(data, 0)
	if err != nil {
		return fmt.Errorf("--config %s: %w", path, err)
	}
	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		for _, entry := range entries(doc.Body) {
			if err := settleEntry(flags, path, entry); err != nil {
				return err
			}
		}
		if entries(doc.Body) == nil {
			at := doc.Body.GetToken().Position
			return fmt.Errorf("%s:%d:%d: want a mapping of flag names to values", path, at.Line, at.Column)
		}
	}
	return nil
}

func entries(body ast.Node) []*ast.MappingValueNode {
	switch n := body.(type) {
	case *ast.MappingNode:
		return n.Values
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}
	default:
		return nil
	}
}

func settleEntry(flags *pflag.FlagSet, path string, e *ast.MappingValueNode) error {
	key := strings.ReplaceAll(e.Key.GetToken().Value, "_", "-")
	at := e.Key.GetToken().Position
	f := flags.Lookup(key)
	if f == nil || key == "config" || key == "help" {
		return fmt.Errorf("%s:%d:%d: unknown key %q: want the name of a flag of this command, without dashes", path, at.Line, at.Column, key)
	}
	value, err := scalar(e.Value)
	if err != nil {
		return fmt.Errorf("%s:%d:%d: %s: %w", path, at.Line, at.Column, key, err)
	}
	if f.Changed {
		return nil
	}
	if err := flags.Set(key, value); err != nil {
		return fmt.Errorf("%s:%d:%d: %s: %w", path, at.Line, at.Column, key, err)
	}
	return nil
}

// scalar is the text of a value, or of a list of values joined by commas.
func scalar(n ast.Node) (string, error) {
	switch v := n.(type) {
	case *ast.SequenceNode:
		var parts []string
		for _, item := range v.Values {
			s, err := scalar(item)
			if err != nil {
				return "", err
			}
			parts = append(parts, s)
		}
		return strings.Join(parts, ","), nil
	case ast.ScalarNode:
		return v.GetToken().Value, nil
	default:
		return "", errors.New("want one value or a list")
	}
}
