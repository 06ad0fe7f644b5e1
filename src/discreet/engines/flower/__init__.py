"""The flower engine: real clients over a network, with Flower as the transport. The only folder that imports flwr."""
