package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"time"
)

//go:embed report.html.tmpl
var page string

var pageTemplate = template.Must(template.New("report").Funcs(template.FuncMap{
	"timeline": timeline,
	"load":     loadChart,
	"latency":  latencyChart,
	"seconds":  func(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) },
	"ms":       func(d time.Duration) string { return d.Round(100 * time.Microsecond).String() },
	"percent":  func(f float64) string { return fmt.Sprintf("%.3f %%", 100*f) },
	"names":    sorted,
	"first":    func(s string) string { return firstLine(s) },
}).Parse(page))

// HTML writes the report for people.
func (r *Report) HTML(w io.Writer) error { return pageTemplate.Execute(w, r) }

func firstLine(s string) string {
	for i, c := range s {
		if c == '\n' {
			return s[:i]
		}
	}
	return s
}
