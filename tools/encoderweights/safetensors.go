package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strings"
)

// entry describes a tensor in the header of a safetensors file.
type entry struct {
	Type    string `json:"dtype"`
	Shape   []int  `json:"shape"`
	Offsets [2]int `json:"data_offsets"`
}

// readSafetensors returns the tensors of 32-bit floats in a file.
func readSafetensors(name string) (map[string]tensor, error) {
	file, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	if len(file) < 8 || binary.LittleEndian.Uint64(file) > uint64(len(file)-8) {
		return nil, fmt.Errorf("%s is not in the format safetensors", name)
	}
	size := binary.LittleEndian.Uint64(file)
	var header map[string]json.RawMessage
	if err := json.Unmarshal(file[8:8+size], &header); err != nil {
		return nil, fmt.Errorf("the header of %s: %w", name, err)
	}
	data := file[8+size:]
	tensors := map[string]tensor{}
	for key, raw := range header {
		var e entry
		if key == "__metadata__" {
			continue
		}
		if err := json.Unmarshal(raw, &e); err != nil {
			return nil, fmt.Errorf("the header of %s: %w", name, err)
		}
		if e.Type != "F32" {
			continue
		}
		t := tensor{shape: e.Shape}
		for offset := e.Offsets[0]; offset < e.Offsets[1]; offset += 4 {
			t.values = append(t.values, math.Float32frombits(binary.LittleEndian.Uint32(data[offset:])))
		}
		tensors[key] = t
	}
	return tensors, nil
}

// writer collects the tensors for a safetensors file.
type writer struct {
	header  map[string]entry
	data    []byte
	largest map[string][]float32
}

func (w *writer) add(name, kind string, shape []int, data []byte) {
	w.header[name] = entry{kind, shape, [2]int{len(w.data), len(w.data) + len(data)}}
	w.data = append(w.data, data...)
}

func (w *writer) bytes(name string, values []int8, shape ...int) {
	data := make([]byte, len(values))
	for i, v := range values {
		data[i] = byte(v)
	}
	w.add(name, "I8", shape, data)
}

func (w *writer) floats(name string, values []float32, shape ...int) {
	var data []byte
	for _, v := range values {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
	}
	w.add(name, "F32", shape, data)
}

func (w *writer) ints(name string, values []int32, shape ...int) {
	var data []byte
	for _, v := range values {
		data = binary.LittleEndian.AppendUint32(data, uint32(v))
	}
	w.add(name, "I32", shape, data)
}

// file returns the bytes of the file. The header is padded to a multiple of 64 bytes.
func (w *writer) file() []byte {
	header, err := json.Marshal(w.header)
	if err != nil {
		panic(err) // the header holds only numbers and names
	}
	fill := -(8 + len(header)) & 63
	file := binary.LittleEndian.AppendUint64(nil, uint64(len(header)+fill))
	file = append(append(file, header...), strings.Repeat(" ", fill)...)
	return append(file, w.data...)
}
