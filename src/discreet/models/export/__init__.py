"""A trained model as a file for other programs: ONNX, TorchScript or safetensors."""
