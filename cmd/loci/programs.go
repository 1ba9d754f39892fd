package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/loci-memory/loci/files/document"
	"github.com/loci-memory/loci/files/document/operator"
	"github.com/loci-memory/loci/files/sandbox"
)

// programs holds the settings of programs of the operator that read documents.
type programs struct {
	OCRCommand     string `name:"ocr-command" env:"LOCI_OCR_COMMAND" help:"Program that reads pictures: docs/formats.md."`
	ConvertCommand string `env:"LOCI_CONVERT_COMMAND" help:"Program that converts .doc, .xls, .ppt, .rtf and .msg."`

	ProgramMemory int64         `name:"program-memory-bytes" env:"LOCI_PROGRAM_MEMORY_BYTES" default:"2147483648" help:"Memory of one run of these programs."`               //nolint:lll // a tag is one line
	ProgramCPU    time.Duration `name:"program-cpu-time" env:"LOCI_PROGRAM_CPU_TIME" default:"2m" help:"Processor time of one run of these programs, in all its processes."` //nolint:lll // a tag is one line
}

// runProgramCmd runs a program of the operator in its sandbox, in a process of its own.
type runProgramCmd struct {
	Request string `arg:""`
}

func (c runProgramCmd) Run(context.Context, streams) error {
	sandbox.Launch(c.Request)
	return nil
}

// leastProgramMemory and leastProgramCPU are the lowest limits under which a program starts.
const (
	leastProgramMemory = 64 << 20
	leastProgramCPU    = time.Second
)

// documentReader returns a reader of documents, with the programs of the operator.
func (p programs) documentReader(ctx context.Context, d database, log *slog.Logger) (*operator.Reader, error) {
	documents, err := childReader(d, log)
	if err != nil || p.OCRCommand == "" && p.ConvertCommand == "" {
		return &operator.Reader{Documents: documents}, err
	}
	if p.ProgramMemory < leastProgramMemory {
		return nil, settingError{fmt.Errorf("LOCI_PROGRAM_MEMORY_BYTES is %d; it must be at least %d", p.ProgramMemory,
			leastProgramMemory)}
	}
	if p.ProgramCPU < leastProgramCPU {
		return nil, settingError{fmt.Errorf("LOCI_PROGRAM_CPU_TIME is %s; it must be at least %s", p.ProgramCPU,
			leastProgramCPU)}
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program, which runs others in a sandbox: %w", err)
	}
	host, err := sandbox.NewHost(ctx, "", self, "run-program")
	if err != nil {
		return nil, settingError{fmt.Errorf("programs of the operator (%s, %s) cannot run here: %w", document.OCRSetting,
			document.ConvertSetting, err)}
	}
	if !host.OwnTmp && p.ConvertCommand != "" {
		log.Warn("programs get no /tmp of their own, because this system lets the server make no mounts; LibreOffice does " +
			"not start without it")
	}
	r, slots := &operator.Reader{Documents: documents}, operator.NewSlots()
	for _, c := range []struct {
		setting, line string
		command       **operator.Command
	}{{document.OCRSetting, p.OCRCommand, &r.OCR}, {document.ConvertSetting, p.ConvertCommand, &r.Convert}} {
		if c.line == "" {
			continue
		}
		line, err := operator.Parse(c.line)
		if err != nil {
			return nil, settingError{fmt.Errorf("%s is '%s': %w", c.setting, c.line, err)}
		}
		*c.command = &operator.Command{Setting: c.setting, Line: line, Host: host, MemoryBytes: p.ProgramMemory,
			CPU: p.ProgramCPU, Slots: slots}
	}
	return r, nil
}
