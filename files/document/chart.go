package document

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/xuri/excelize/v2"
)

// Limits of a chart. What is beyond them is named.
const (
	maxSeries = 250
	maxPoints = 2000 // of a series
)

// unquoted matches what a number format shows as it stands, and its colours and conditions.
var unquoted = regexp.MustCompile(`"[^"]*"|\\.|\[[^\]]*\]`)

// chartReader reads a chart: its titles, and for each series the values that its program last stored.
type chartReader struct {
	budget *budget
	cells  func(reference string) []string // values of cells, for a chart that stores none; nil: there are no cells
	title  string
	axes   []string
	series []chartSeries
	labels []string // that were written by hand, and names of trend lines
}

// chartSeries is a row of values with a name. categories and values have the same indices.
type chartSeries struct {
	name               string
	categories, values []string
}

// chart adds a chart, which is a separate part, as a small table below its title.
func (d *drawing) chart(id string) error {
	link := d.links[id]
	if !d.archive.has(link.target) {
		d.archive.budget.omitted.add(chart)
		return nil
	}
	c := &chartReader{budget: d.archive.budget, cells: d.cells}
	if err := d.archive.part(link.target, c.read); err != nil {
		return err
	}
	c.write(d.md)
	return nil
}

// read reads an element of a chart.
func (c *chartReader) read(x *xmlReader) error {
	return x.each(func(e element) error {
		switch e.name {
		case "c:title", "cx:title":
			return c.text(x, &c.title)
		case "c:catAx", "c:valAx", "c:dateAx", "c:serAx":
			return x.find("c:title", func(element) error {
				var axis string
				err := c.text(x, &axis)
				if axis != "" && len(c.axes) < 10 {
					c.axes = append(c.axes, axis)
				}
				return err
			})
		case "c:ser":
			return c.readSeries(x)
		case "cx:data":
			return c.readData(x)
		case "c:txPr", "c:spPr", "c:legend", "c:extLst", "c:userShapes", "mc:Fallback", "c:pivotSource":
			return nil
		}
		return c.read(x)
	})
}

// text appends the text of a title: written out, or taken from a cell.
func (c *chartReader) text(x *xmlReader, to *string) error {
	err := x.each(func(e element) error {
		switch e.name {
		case "a:t", "c:v", "cx:v":
			text, err := x.text()
			*to += text
			return err
		case "a:p":
			*to += " "
		case "c:spPr", "c:txPr", "cx:spPr", "cx:txPr":
			return nil
		}
		return c.text(x, to)
	})
	*to = onOneLine(*to)
	return err
}

func (c *chartReader) readSeries(x *xmlReader) error {
	s := chartSeries{}
	err := x.each(func(e element) (err error) {
		switch e.name {
		case "c:tx":
			var names []string
			names, err = c.points(x)
			s.name = onOneLine(strings.Join(names, " "))
		case "c:cat", "c:xVal":
			s.categories, err = c.points(x)
		case "c:val", "c:yVal":
			s.values, err = c.points(x)
		case "c:dLbls", "c:trendline":
			err = c.readLabels(x)
		}
		return err
	})
	c.add(s)
	return err
}

// readLabels reads what was written beside the values of a series by hand.
func (c *chartReader) readLabels(x *xmlReader) error {
	return x.each(func(e element) error {
		label := ""
		switch e.name {
		case "c:rich":
			if err := c.text(x, &label); err != nil {
				return err
			}
		case "c:name":
			text, err := x.text()
			if label = onOneLine(text); err != nil {
				return err
			}
		case "c:spPr", "c:txPr", "c:extLst":
			return nil
		default:
			return c.readLabels(x)
		}
		if label != "" && len(c.labels) < maxPoints && c.budget.handle(len(label)) {
			c.labels = append(c.labels, label)
		}
		return nil
	})
}

// readData reads a series of the charts that Office has since 2016.
func (c *chartReader) readData(x *xmlReader) error {
	s := chartSeries{}
	err := x.each(func(e element) (err error) {
		switch e.name {
		case "cx:strDim":
			s.categories, err = c.points(x)
		case "cx:numDim":
			s.values, err = c.points(x)
		}
		return err
	})
	c.add(s)
	return err
}

func (c *chartReader) add(s chartSeries) {
	if len(c.series) >= maxSeries {
		c.budget.omitted.add("series of a chart")
		return
	}
	c.series = append(c.series, s)
}

// points reads the stored values of categories or of a series. Categories of several levels are joined.
func (c *chartReader) points(x *xmlReader) (values []string, err error) {
	format, reference := "", ""
	var levels [][]string // the innermost first
	var level []string
	var read func() error
	read = func() error {
		return x.each(func(e element) error {
			switch e.name {
			case "c:formatCode":
				text, err := x.text()
				format = text
				return err
			case "c:lvl", "cx:lvl":
				if e.attr("formatCode") != "" {
					format = e.attr("formatCode")
				}
				level = nil
				err := read()
				levels = append(levels, level)
				level = nil
				return err
			case "c:pt", "cx:pt":
				text, err := x.text()
				level = c.point(level, number(e.attr("idx"), len(level)), inNumberFormat(onOneLine(text), format))
				return err
			case "c:v": // a name that is written out
				text, err := x.text()
				level = c.point(level, 0, onOneLine(text))
				return err
			case "c:f":
				text, err := x.text()
				reference = text
				return err
			case "cx:f", "c:ptCount", "c:extLst":
				return nil
			}
			return read()
		})
	}
	err = read()
	if level != nil {
		if c.cells != nil && reference != "" && strings.EqualFold(format, "general") {
			level = asShown(level, c.cells(reference))
		}
		levels = append(levels, level)
	}
	if len(levels) == 0 && c.cells != nil && reference != "" {
		for i, value := range c.cells(reference) {
			level = c.point(level, i, onOneLine(value))
		}
		levels = append(levels, level)
	}
	return joinLevels(levels), err
}

// asShown returns stored values as their cells show them, such as dates. A chart often stores them without a format.
func asShown(values, cells []string) []string {
	if len(cells) != len(values) {
		return values
	}
	for i, cell := range cells {
		_, err := strconv.ParseFloat(cell, 64)
		_, stored := strconv.ParseFloat(values[i], 64)
		if cell != "" && err != nil && stored == nil {
			values[i] = onOneLine(cell)
		}
	}
	return values
}

// point sets a value at its index.
func (c *chartReader) point(level []string, index int, text string) []string {
	if index < 0 || index >= maxPoints {
		c.budget.omitted.add("value of a chart")
		return level
	}
	for len(level) <= index && c.budget.handle(16) {
		level = append(level, "")
	}
	if index < len(level) && c.budget.handle(len(text)) {
		level[index] = text
	}
	return level
}

// joinLevels joins the levels of categories: an outer one holds until the next.
func joinLevels(levels [][]string) []string {
	if len(levels) == 0 {
		return nil
	}
	all := levels[0]
	for _, outer := range levels[1:] {
		last := ""
		for i := range all {
			if i < len(outer) && outer[i] != "" {
				last = outer[i]
			}
			all[i] = strings.TrimSpace(last + " " + all[i])
		}
	}
	return all
}

// inNumberFormat returns a stored number as a chart shows it, as far as dates and percents go.
func inNumberFormat(text, format string) string {
	value, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(value, 0) || math.IsNaN(value) {
		return text
	}
	code := unquoted.ReplaceAllString(strings.ToLower(format), "")
	switch {
	case strings.Contains(code, "general"):
	case strings.Contains(code, "yy") || strings.Contains(code, "d"):
		if date, err := excelize.ExcelDateToTime(value, false); err == nil && value > 0 {
			return strings.TrimSuffix(date.Format("2006-01-02 15:04"), " 00:00")
		}
	case strings.Contains(code, "%"):
		return shortNumber(value*100) + "%"
	}
	return shortNumber(value)
}

// shortNumber returns a number with the digits that Excel keeps.
func shortNumber(value float64) string {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(value, 'g', 15, 64), 64)
	if err != nil {
		rounded = value
	}
	if abs := math.Abs(rounded); abs != 0 && (abs < 1e-9 || abs >= 1e21) {
		return strconv.FormatFloat(rounded, 'g', -1, 64)
	}
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}

// write adds the chart: one table if all series have the same categories, else one for each.
func (c *chartReader) write(md *markdown) {
	md.paragraph(chartHeading(c.title, c.axes))
	for first := 0; first < len(c.series); {
		last := first + 1
		for last < len(c.series) && slices.Equal(c.series[last].categories, c.series[first].categories) {
			last++
		}
		md.table(c.rows(c.series[first:last]))
		first = last
	}
	if len(c.labels) > 0 {
		md.paragraph("Labels: " + strings.Join(c.labels, "; "))
	}
}

// chartHeading returns the first line of a chart: its title and the titles of its axes.
func chartHeading(title string, axes []string) string {
	heading := "Chart"
	if title != "" {
		heading += ": " + title
	}
	if len(axes) > 0 {
		heading += " (" + strings.Join(axes, "; ") + ")"
	}
	return heading
}

// rows returns a table of series with the same categories.
func (c *chartReader) rows(all []chartSeries) []row {
	length := len(all[0].categories)
	head := row{}
	head.add(c.budget, "", 1)
	for _, s := range all {
		head.add(c.budget, s.name, 1)
		length = max(length, len(s.values))
	}
	rows := []row{head}
	for i := range length {
		r := row{}
		r.add(c.budget, at(all[0].categories, i), 1)
		for _, s := range all {
			r.add(c.budget, at(s.values, i), 1)
		}
		rows = append(rows, r)
	}
	return rows
}

func at(values []string, i int) string {
	if i < len(values) {
		return values[i]
	}
	return ""
}
